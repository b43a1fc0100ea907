"""The whole story in one run: a shop in Python places orders and refuses some after their message
was written, `rowpost relay` publishes, a consumer reads the queue, the relay gets SIGTERM, and orders
and messages are compared."""

import os
import signal
import subprocess
import sys
import uuid
from urllib.parse import unquote, urlparse

import pika
import pymysql

from consumer import read_rest, read_until
from shop import OverLimit, place_order

DATABASE_URL = os.environ.get("DATABASE_URL", "mysql://root@127.0.0.1:3306/rowpost_example_python")
RABBITMQ_URL = os.environ.get("RABBITMQ_URL", "amqp://127.0.0.1:5672")
ROWPOST = os.path.join(os.path.dirname(os.path.abspath(__file__)), "node_modules", ".bin", "rowpost")
ORDERS = 50


def connect(database):
    url = urlparse(DATABASE_URL)
    return pymysql.connect(
        host=url.hostname,
        port=url.port or 3306,
        user=unquote(url.username or "root"),
        password=unquote(url.password or ""),
        database=database,
        charset="utf8mb4",
    )


def prepare(name):
    with connect(None) as server, server.cursor() as cursor:
        cursor.execute(f"CREATE DATABASE IF NOT EXISTS {name}")
    subprocess.run([ROWPOST, "migrate", "--database", DATABASE_URL], check=True, stdout=subprocess.DEVNULL)
    shop = connect(name)
    with shop.cursor() as cursor:
        cursor.execute("CREATE TABLE IF NOT EXISTS orders (id VARCHAR(64) PRIMARY KEY, amount INT NOT NULL)")
    return shop


def main():
    run = uuid.uuid4().hex[:8]
    queue = f"rowpost_example_{run}"
    shop = prepare(urlparse(DATABASE_URL).path[1:])
    broker = pika.BlockingConnection(pika.URLParameters(RABBITMQ_URL))
    channel = broker.channel()
    channel.queue_declare(queue)

    relay = subprocess.Popen([ROWPOST, "relay", "--database", DATABASE_URL, "--broker", RABBITMQ_URL])
    placed, arrived = set(), {}
    try:
        for number in range(1, ORDERS + 1):
            order = {"id": f"{run}-{number}", "amount": 5000 if number % 5 == 0 else number}
            try:
                place_order(shop, order, queue)
                placed.add(order["id"])
            except OverLimit:
                pass
        read_until(channel, queue, arrived, placed, seconds=60)
    finally:
        relay.send_signal(signal.SIGTERM)  # finishes what is in flight
        status = relay.wait()
    read_rest(channel, queue, arrived)
    channel.queue_delete(queue)
    broker.close()

    with shop, shop.cursor() as cursor:
        cursor.execute("SELECT id FROM orders WHERE id LIKE %s", (f"{run}-%",))
        orders = {row[0] for row in cursor.fetchall()}
    lost, phantom = orders - arrived.keys(), arrived.keys() - orders
    print(f"committed={len(orders)} rolled_back={ORDERS - len(placed)} arrived={len(arrived)}")
    print(f"lost={len(lost)} phantom={len(phantom)}")
    is_good = not lost and not phantom and orders == placed and len(orders) < ORDERS and status == 0
    sys.exit(0 if is_good else 1)


main()
