import java.time.Duration;
import java.util.List;
import java.util.Properties;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** Members of a consumer group, each in a thread, until standard input ends. */
public class JavaGroup {
    private static volatile boolean over = false;

    public static void main(String[] arguments) throws Exception {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", arguments[0]);
        settings.put("group.id", arguments[1]);
        settings.put("group.protocol", arguments[3]);
        settings.put("auto.offset.reset", "earliest");
        settings.put("auto.commit.interval.ms", "500");
        Thread[] members = new Thread[Integer.parseInt(arguments[4])];
        for (int number = 0; number < members.length; number++) {
            members[number] = new Thread(() -> {
                try (var consumer =
                        new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
                    consumer.subscribe(List.of(arguments[2]));
                    while (!over) {
                        consumer.poll(Duration.ofMillis(100));
                    }
                }
            });
            members[number].start();
        }
        while (System.in.read() >= 0) {}
        over = true;
        for (Thread member : members) {
            member.join();
        }
    }
}
