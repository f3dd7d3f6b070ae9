"""Addresses that workers advertise: a worker of the group may advertise anything."""

from __future__ import annotations

import pytest

from connect_py.group.peers import Peers, UnsentError, address_of


@pytest.mark.parametrize(
    "address",
    ["", "http://[", "http://worker:port/", "http://worker:99999/", "https://a..b:1/", f"http://{'a' * 70}.b:1/", "http://\x00:1/"],
)
def test_a_request_to_an_address_that_is_none_is_not_sent(address: str) -> None:
    with pytest.raises(UnsentError):
        Peers().send("GET", f"{address}connectors", b"", {}, 1)


def test_a_workers_id_is_the_host_and_port_of_its_address() -> None:
    assert address_of("http://worker:8083/") == "worker:8083"
    assert address_of("http://[/") == ""
