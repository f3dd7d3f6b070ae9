"""A large result, read from the socket as it is asked for. It takes the driver's connection over until its last row was read."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from connectors.mysql.errors import LostConnectionError, server_error_of_packet
from connectors.mysql.server.text_rows import MalformedRowError, TextRow, large_row, packet_size, row_function, split_packets

_RECEIVE_BYTES = 1 << 18
_ERROR = 0xFF


class TextResult:
    """The rows of one statement.

    Args:
        receive: gives some of the next bytes, at most so many, and none when the connection ended. Raises ServerError.
        ended: called when the last row was read.
        characters: of each column, whether its values are characters.
        where: for messages.
    """

    def __init__(self, receive: Callable[[int], bytes], ended: Callable[[], None], characters: Sequence[bool], where: str) -> None:
        self._receive = receive
        self._ended = ended
        self._where = where
        self._read_row = row_function(characters)
        self._data = b""
        self._at = 0
        self._done = False

    def read(self, rows: int, size: int) -> tuple[list[TextRow], int]:
        """As `packets`, the rows as texts."""
        found, total = self.packets(rows, size)
        try:
            return [self._read_row(row, row.decode("latin-1")) for row in found], total
        except (MalformedRowError, IndexError) as error:
            raise LostConnectionError(f"{self._where} sent a row that cannot be read: {error}") from None

    def packets(self, rows: int, size: int) -> tuple[list[bytes], int]:
        """Up to so many rows, of about so many bytes.

        Returns:
            The rows as they came, none after the last one, and their bytes.

        Raises:
            ServerError: the statement failed, or the connection broke.
        """
        found: list[bytes] = []
        total = 0
        while not self._done and len(found) < rows and total < size:
            before = self._at
            self._at, special = split_packets(self._data, before, found.append, rows - len(found))
            more = not special or not self._special(found)
            total += self._at - before
            if more and len(found) < rows:
                self._fill()
        return found, total

    def _special(self, found: list[bytes]) -> bool:
        """Take a packet that is no usual row. Returns whether all of it was there."""
        data, at = self._data, self._at
        size = packet_size(data, at) or 0
        if size - 4 == 0xFFFFFF:
            whole = large_row(data, at)
            if whole is None:
                return False
            found.append(whole[0])
            self._at = whole[1]
            return True
        if data[at + 4] == _ERROR:
            raise server_error_of_packet(data[at + 4 : at + size], f"A statement failed on {self._where}")
        self._done = True
        self._ended()
        return True

    def _fill(self) -> None:
        """More bytes; of a packet that is larger than what is there, all."""
        rest = self._data[self._at :]
        missing = (packet_size(rest, 0) or 4) - len(rest)
        parts = [rest]
        while True:
            data = self._receive(max(_RECEIVE_BYTES, missing))
            if not data:
                raise LostConnectionError(f"{self._where} closed the connection in the middle of a result")
            parts.append(data)
            missing -= len(data)
            if missing <= 0:
                break
        self._data = b"".join(parts)
        self._at = 0
