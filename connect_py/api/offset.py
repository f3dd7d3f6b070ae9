"""Where a source is, in the source's own terms (KIP-26; `OffsetUtils.java` has the rules on types).

A *source partition* names a stream of records (``{"server": "shop"}``), a *source offset* a place in it
(``{"lsn": 33554816, "txId": 742}``). Both are flat maps of strings to primitives. Their order of keys is kept, because the offsets
topic is keyed by the exact bytes of ``["connector", partition]``.
"""

from __future__ import annotations

from collections.abc import Mapping

OffsetValue = None | bool | int | float | str
SourcePartition = Mapping[str, OffsetValue]
SourceOffset = Mapping[str, OffsetValue]
