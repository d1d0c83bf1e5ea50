"""Lambda from prices: how many consumers it is worth to move one consumer's capacity less. See docs/lambda.md."""

SECONDS_PER_HOUR = 3600.0


def migration_weight(
    *, consumer_hour_price: float, unread_partition_second_price: float, handover_s: float, interval_s: float
) -> float:
    """Lambda = (u * h) / (c * T / 3600): what it costs to move a full partition, over what a consumer costs meanwhile.

    Args:
        consumer_hour_price: c, the price of a consumer for an hour, above 0, in any currency.
        unread_partition_second_price: u, the price of one second without a reader of a partition that is as fast as a
            consumer's capacity, in the same currency; slower partitions count in proportion, as in the Rscore.
        handover_s: h, the seconds for which a partition that moves is not read.
        interval_s: T, the seconds for which a plan stands until the assignment is considered anew.
    """
    consumer = consumer_hour_price * interval_s / SECONDS_PER_HOUR
    return unread_partition_second_price * handover_s / consumer
