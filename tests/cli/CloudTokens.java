import java.net.URI;
import java.net.URLDecoder;
import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.time.LocalDateTime;
import java.time.ZoneOffset;
import java.time.format.DateTimeFormatter;
import java.util.Base64;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;
import javax.security.auth.callback.Callback;
import javax.security.auth.login.AppConfigurationEntry;
import org.apache.kafka.common.security.auth.AuthenticateCallbackHandler;
import org.apache.kafka.common.security.oauthbearer.OAuthBearerToken;
import org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallback;

/**
 * Takes the access tokens of Amazon MSK, whose signature it makes anew, and of Google, if the access token in it is one
 * of those in a file. Users are whom the tokens name.
 */
public class CloudTokens implements AuthenticateCallbackHandler {
    private static final String SECRET = System.getProperty("kcga.aws.secret");
    private static final Path GIVEN = Path.of(System.getProperty("kcga.google.given"));
    private static final DateTimeFormatter AT = DateTimeFormatter.ofPattern("yyyyMMdd'T'HHmmss'Z'");

    private record Token(String value, String principalName, long lifetimeMs) implements OAuthBearerToken {
        public Set<String> scope() {
            return Set.of();
        }

        public Long startTimeMs() {
            return null;
        }
    }

    public void configure(Map<String, ?> configs, String mechanism, List<AppConfigurationEntry> entries) {}

    public void close() {}

    public void handle(Callback[] callbacks) {
        for (Callback each : callbacks) {
            if (each instanceof OAuthBearerValidatorCallback asked) {
                try {
                    String value = asked.tokenValue();
                    asked.token(value.contains(".") ? ofGoogle(value) : ofAmazon(value));
                } catch (Exception refused) {
                    asked.error("invalid_token", null, null);
                }
            }
        }
    }

    private static Token ofGoogle(String value) throws Exception {
        String[] parts = value.split("\\.");
        String claims = decoded(parts[1]);
        require(decoded(parts[0]).contains("\"GOOG_OAUTH2_TOKEN\""));
        require(Files.readAllLines(GIVEN).contains(decoded(parts[2])));
        return checked(value, found(claims, "\"sub\": \"([^\"]+)\""), (long) (1000 * Double.parseDouble(found(claims, "\"exp\": ([0-9.]+)"))));
    }

    private static Token ofAmazon(String value) throws Exception {
        URI uri = URI.create(decoded(value));
        Map<String, String> query = new TreeMap<>();
        for (String each : uri.getRawQuery().split("&")) {
            String[] pair = each.split("=", 2);
            query.put(pair[0], URLDecoder.decode(pair[1], StandardCharsets.UTF_8));
        }
        require(query.remove("User-Agent") != null);
        String signature = query.remove("X-Amz-Signature");
        require(query.get("Action").equals("kafka-cluster:Connect") && query.get("X-Amz-Expires").equals("900"));
        StringBuilder canonical = new StringBuilder();
        query.forEach((name, each) -> canonical.append('&').append(name).append('=').append(quoted(each)));
        String request = String.join("\n", "GET", "/", canonical.substring(1), "host:" + uri.getHost(), "", "host", hash(""));
        String[] credential = query.get("X-Amz-Credential").split("/", 2);
        String at = query.get("X-Amz-Date");
        byte[] key = ("AWS4" + SECRET).getBytes(StandardCharsets.UTF_8);
        for (String part : credential[1].split("/")) {
            key = hmac(key, part);
        }
        String signed = String.join("\n", "AWS4-HMAC-SHA256", at, credential[1], hash(request));
        require(HexFormat.of().formatHex(hmac(key, signed)).equals(signature));
        long signedAt = LocalDateTime.parse(at, AT).toInstant(ZoneOffset.UTC).toEpochMilli();
        return checked(value, credential[0], signedAt + 900_000);
    }

    private static Token checked(String value, String user, long until) {
        require(until > System.currentTimeMillis());
        return new Token(value, user, until);
    }

    private static void require(boolean holds) {
        if (!holds) {
            throw new IllegalArgumentException();
        }
    }

    private static String found(String text, String pattern) {
        Matcher matcher = Pattern.compile(pattern).matcher(text);
        require(matcher.find());
        return matcher.group(1);
    }

    private static String decoded(String part) {
        return new String(Base64.getUrlDecoder().decode(part), StandardCharsets.UTF_8);
    }

    private static String quoted(String text) {
        return URLEncoder.encode(text, StandardCharsets.UTF_8).replace("+", "%20").replace("%7E", "~").replace("*", "%2A");
    }

    private static String hash(String text) throws Exception {
        byte[] digest = MessageDigest.getInstance("SHA-256").digest(text.getBytes(StandardCharsets.UTF_8));
        return HexFormat.of().formatHex(digest);
    }

    private static byte[] hmac(byte[] key, String text) throws Exception {
        Mac mac = Mac.getInstance("HmacSHA256");
        mac.init(new SecretKeySpec(key, "HmacSHA256"));
        return mac.doFinal(text.getBytes(StandardCharsets.UTF_8));
    }
}
