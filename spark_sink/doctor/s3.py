"""Whether the sink's tables can be in S3: the bucket, its region, the credentials and the libraries, asked without Spark.

One request is sent, which lists one object's name, signed as Amazon's SDKs sign (AWS Signature Version 4). Nothing is written, so that a
right to write that is missing is not seen. Without credentials in the configuration or the environment (a profile, a role of the machine)
the request goes unsigned, and says only whether there is such a bucket, and where.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import shlex
import urllib.error
import urllib.parse
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from connect_py.api.doctor import Finding, Person
from spark_sink.config.sink_config import PREFIX, SinkConfig, kind_of
from spark_sink.doctor.web import NO_ANSWER, open_url, reason_of

_SCHEMES = frozenset({"s3", "s3a", "s3n"})
_MOST_BYTES = 64 << 10
#: Where Amazon's clients ask first for a bucket whose region is not known.
_REGION = "us-east-1"
_WRONG_LOGIN = frozenset({"InvalidAccessKeyId", "SignatureDoesNotMatch", "InvalidToken", "ExpiredToken", "InvalidClientTokenId"})


@dataclass(frozen=True, slots=True)
class Bucket:
    """Where tables are to be, and how the sink gets there.

    Attributes:
        endpoint: None for Amazon's own.
        region: empty where none is set.
        uses: the beginning of the properties that say so: `catalog.s3.`, or `hadoop.fs.s3a.`.
        region_property: that of the region.
    """

    name: str
    folder: str
    uses: str
    region_property: str
    endpoint: str | None = None
    path_style: bool = False
    region: str = ""
    key: str = ""
    secret: str = field(default="", repr=False)
    token: str = field(default="", repr=False)

    @property
    def url(self) -> str:
        """Where one object's name is listed."""
        base = self.endpoint or f"https://s3.{self.region or _REGION}.amazonaws.com"
        parts = urllib.parse.urlsplit(base if "://" in base else f"https://{base}")
        host, path = (parts.netloc, f"/{self.name}") if self.path_style else (f"{self.name}.{parts.netloc}", "/")
        query = urllib.parse.urlencode({"list-type": "2", "max-keys": "1", "prefix": self.folder}, quote_via=urllib.parse.quote)
        return f"{parts.scheme}://{host}{path}?{query}"

    @property
    def shown(self) -> str:
        """Its name, for people."""
        return f"the bucket '{self.name}'{f' at {self.endpoint}' if self.endpoint else ''}"


@dataclass(frozen=True, slots=True)
class Answer:
    """What S3 said.

    Attributes:
        status: of HTTP; 0 where there was no answer.
        code: S3's name of the error.
        text: its sentence, or why there was no answer.
        region: where the bucket is, if it said so.
    """

    status: int
    code: str = ""
    text: str = ""
    region: str = ""


def bucket_of(config: SinkConfig, environment: Mapping[str, str]) -> Bucket | None:
    """Return where a sink's tables are; None where that is not S3, or where the catalog gives out the credentials.

    Args:
        environment: the worker's, which Spark inherits.
    """
    parts = urllib.parse.urlsplit(config["delta.root"] or config.catalog.get("warehouse", ""))
    if parts.scheme not in _SCHEMES or not parts.netloc:
        return None
    name, folder = parts.netloc, parts.path.strip("/")
    is_rest = config["format"] != "delta" and kind_of(config.catalog) == "rest"  # whose client takes S3FileIO unasked
    of_iceberg = is_rest or (config["format"] != "delta" and config.catalog.get("io-impl", "").endswith("S3FileIO"))
    names: Sequence[str]
    if of_iceberg:
        given = config.catalog
        names = ("s3.endpoint", "s3.path-style-access", "client.region", "s3.access-key-id", "s3.secret-access-key")
        token = config.catalog.get("s3.session-token", "")
        if is_rest and "s3.access-key-id" not in given:
            return None
    else:
        given = {key.removeprefix("spark.hadoop."): value for key, value in config.spark_conf.items()}
        # a bucket may have settings of its own
        own = f"fs.s3a.bucket.{name}."
        given |= {f"fs.s3a.{key.removeprefix(own)}": value for key, value in given.items() if key.startswith(own)}
        names = [f"fs.s3a.{each}" for each in ("endpoint", "path.style.access", "endpoint.region", "access.key", "secret.key")]
        token = given.get("fs.s3a.session.token", "")
    endpoint, path_style, region, key, secret = (given.get(each, "").strip() for each in names)
    if not key:
        key, secret = environment.get("AWS_ACCESS_KEY_ID", ""), environment.get("AWS_SECRET_ACCESS_KEY", "")
        token = environment.get("AWS_SESSION_TOKEN", "")
    return Bucket(
        name,
        folder,
        "catalog.s3." if of_iceberg else "hadoop.fs.s3a.",
        "catalog.client.region" if of_iceberg else "hadoop.fs.s3a.endpoint.region",
        endpoint or None,
        path_style.lower() == "true",
        region or environment.get("AWS_REGION") or environment.get("AWS_DEFAULT_REGION") or "",
        key,
        secret,
        token,
    )


def signed_headers(url: str, bucket: Bucket, now: datetime) -> dict[str, str]:
    """Return the headers of a GET request that is signed (AWS Signature Version 4, `GET` without a body).

    Args:
        now: in UTC.
    """
    parts = urllib.parse.urlsplit(url)
    moment, empty = now.strftime("%Y%m%dT%H%M%SZ"), hashlib.sha256(b"").hexdigest()
    headers = {"host": parts.netloc, "x-amz-content-sha256": empty, "x-amz-date": moment}
    if bucket.token:
        headers["x-amz-security-token"] = bucket.token
    names = ";".join(sorted(headers))
    query = "&".join(sorted(parts.query.split("&")))
    lines = "".join(f"{name}:{headers[name]}\n" for name in sorted(headers))
    request = "\n".join(("GET", parts.path or "/", query, lines, names, empty))
    scope = f"{moment[:8]}/{bucket.region or _REGION}/s3/aws4_request"
    text = "\n".join(("AWS4-HMAC-SHA256", moment, scope, hashlib.sha256(request.encode()).hexdigest()))
    key = f"AWS4{bucket.secret}".encode()
    for part in scope.split("/"):
        key = hmac.digest(key, part.encode(), "sha256")
    signature = hmac.digest(key, text.encode(), "sha256").hex()
    del headers["host"]
    login = f"AWS4-HMAC-SHA256 Credential={bucket.key}/{scope}, SignedHeaders={names}, Signature={signature}"
    return {**headers, "Authorization": login}


def ask(bucket: Bucket, seconds: float) -> Answer:
    """List one name of a bucket, in the region where it is if none is set."""
    answer = _ask(bucket, seconds)
    return _ask(replace(bucket, region=answer.region), seconds) if answer.region and not bucket.region else answer


def _ask(bucket: Bucket, seconds: float) -> Answer:
    url = bucket.url
    headers = signed_headers(url, bucket, datetime.now(UTC)) if bucket.key else {}
    try:
        with open_url(url, headers, seconds) as answer:
            return Answer(answer.status)
    except urllib.error.HTTPError as error:
        with error:
            body = error.read(_MOST_BYTES).decode("utf-8", "replace")
        found = {name: match[1] for name in ("Code", "Message", "Region") if (match := re.search(f"<{name}>([^<]*)</{name}>", body))}
        region = error.headers.get("x-amz-bucket-region") or found.get("Region", "")
        return Answer(error.code, found.get("Code", ""), found.get("Message", "")[:200], region)
    except NO_ANSWER as error:
        return Answer(0, text=reason_of(error))


def findings(bucket: Bucket, answer: Answer) -> Iterator[Finding]:
    """Check what S3 said."""
    why = "No table can be written or read."

    def finding(check: str, what: str, advice: str = "", *statements: str) -> Finding:
        return Finding(check, what, why, Person.YOU, statements=statements, advice=advice)

    login = f"{PREFIX}{bucket.uses}*"
    said = " ".join(filter(None, (answer.code or f"HTTP {answer.status}", answer.text))).rstrip(".")
    denied = answer.status in (401, 403)
    if answer.status == 0 or answer.status >= 500:
        yield finding(
            "sink.s3.connection",
            f"S3 does not answer for {bucket.shown}: {said if answer.status else answer.text}.",
            f"Check the endpoint in {login}, and that no firewall is between the two.",
        )
    elif answer.code == "NoSuchBucket" or answer.status == 404:
        there = f" --endpoint-url {shlex.quote(bucket.endpoint)}" if bucket.endpoint else ""
        yield finding(
            "sink.s3.bucket",
            f"There is no such bucket: {bucket.shown}.",
            "Or correct the warehouse.",
            f"aws s3 mb {shlex.quote(f's3://{bucket.name}')} --region {shlex.quote(bucket.region or _REGION)}{there}",
        )
    elif answer.region and bucket.region and answer.region != bucket.region:
        yield finding(
            "sink.s3.region",
            f"S3 says that {bucket.shown} is in the region {answer.region}, not in {bucket.region}.",
            f"Set {PREFIX}{bucket.region_property}={answer.region}.",
        )
    elif answer.code == "RequestTimeTooSkewed":
        what = "S3 refuses requests, because the clock of this machine is wrong."
        yield finding("sink.s3.clock", what, "Let it ask a time server (NTP).")
    elif answer.code in _WRONG_LOGIN:
        yield finding("sink.s3.credentials", f"S3 refuses the credentials for {bucket.shown} ({said}).", f"Correct the keys in {login}.")
    elif denied and bucket.key:
        yield finding(
            "sink.s3.rights",
            f"The key may not list {bucket.shown} ({said}).",
            f"Have it allowed s3:ListBucket on arn:aws:s3:::{bucket.name}, and s3:GetObject, s3:PutObject and s3:DeleteObject on "
            f"arn:aws:s3:::{bucket.name}/*.",
        )
    elif answer.status >= 300 and not denied:
        yield finding("sink.s3.answer", f"S3 refuses a request to {bucket.shown}: {said}.", f"Check {login}.")
