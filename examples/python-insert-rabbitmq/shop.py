"""A shop in Python. It installs nothing of rowpost's: a message is a row."""

import json

LIMIT = 1000


class OverLimit(Exception):
    """The order is refused; so is the message about it, because both are in one transaction."""


def place_order(connection, order, topic):
    """The order and the message about it: both, or neither."""
    try:
        with connection.cursor() as cursor:
            cursor.execute("INSERT INTO orders (id, amount) VALUES (%s, %s)", (order["id"], order["amount"]))
            cursor.execute(
                "INSERT INTO local_message (message_type, message_key, topic, message_body, created_by)"
                " VALUES (%s, %s, %s, %s, 'python-shop')",
                ("order.created", order["id"], topic, json.dumps(order)),
            )
        if order["amount"] > LIMIT:
            raise OverLimit(f"over the limit of {LIMIT}")
        connection.commit()
    except BaseException:
        connection.rollback()
        raise
