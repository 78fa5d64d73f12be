"""The studio's server: requests that are never finished, and names that cannot be."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from socket import create_connection
from threading import Event, Thread, active_count
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from eigenoptions.studio.server import make_server


@pytest.fixture
def address(tmp_path) -> Iterator[tuple[str, int]]:
    (tmp_path / "index.html").write_text("page")
    server = make_server(tmp_path, patience=1.0, max_threads=3)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield "127.0.0.1", server.server_port
    server.shutdown()
    server.server_close()
    thread.join()


def test_half_sent_requests_are_given_up_and_threads_are_bounded(address):
    n_before = active_count()
    most_threads = 0
    clients = []
    for _ in range(12):
        clients.append(create_connection(address))
        clients[-1].sendall(b"GET / HT")
        most_threads = max(most_threads, active_count())

    # One more request waits until all of them are given up.
    answers = []

    def read_page():
        with urlopen(f"http://{address[0]}:{address[1]}/", timeout=60) as answer:
            answers.append(answer.read())

    reader = Thread(target=read_page)
    reader.start()
    while reader.is_alive():
        most_threads = max(most_threads, active_count())
        reader.join(0.005)
    assert answers == [b"page"]
    assert most_threads <= n_before + 3 + 1
    for client in clients:
        client.close()


def test_requests_that_drip_are_given_up_as_a_whole(address):
    """Each byte comes in time, but never the whole request."""
    clients = [create_connection(address) for _ in range(3)]
    is_answered = Event()

    def drip():
        with suppress(OSError):
            while not is_answered.wait(0.1):
                for client in clients:
                    client.sendall(b"G")

    dripping = Thread(target=drip)
    dripping.start()
    try:
        with urlopen(f"http://{address[0]}:{address[1]}/", timeout=20) as answer:
            assert answer.read() == b"page"
    finally:
        is_answered.set()
        dripping.join()
        for client in clients:
            client.close()


def test_a_name_that_no_file_can_have_is_not_found(address):
    with pytest.raises(HTTPError, match="404") as caught:
        urlopen(f"http://{address[0]}:{address[1]}/%00", timeout=60)
    caught.value.close()
