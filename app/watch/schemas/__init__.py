"""Messages that Kafka defines and kafka-python does not have, in the form in which it reads them."""
