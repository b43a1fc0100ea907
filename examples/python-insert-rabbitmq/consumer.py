"""Another service: it reads a queue, made for this run, with pika."""

import time


def read_until(channel, queue, arrived, wanted, seconds):
    """Counts the ids of orders until all that are wanted arrived, or the time is over."""
    until = time.monotonic() + seconds
    for method, properties, _body in channel.consume(queue, inactivity_timeout=1):
        if method is not None:
            count(properties, arrived)
            channel.basic_ack(method.delivery_tag)
        if wanted <= arrived.keys() or time.monotonic() > until:
            break
    channel.cancel()  # what was handed out and not looked at goes back into the queue


def read_rest(channel, queue, arrived):
    """Counts whatever is left, until the queue is empty."""
    while True:
        method, properties, _body = channel.basic_get(queue, auto_ack=True)
        if method is None:
            return
        count(properties, arrived)


def count(properties, arrived):
    key = properties.headers["rowpost-key"]
    arrived[key] = arrived.get(key, 0) + 1
