/** What an edited offset skips or repeats, in words, as far as the offset and the facts of its source tell. No function here asks or draws. */
import { bytes, lsn, time, whole } from './words.js';

/**
 * @param {{partition: object, offset: object|null}[]} before as stored
 * @param {{partition: object, offset: object|null}[]} after as edited
 * @param {object|null} source `source` of the connector: `facts`, `segments`, `head`
 * @returns {string[]} a sentence for each partition whose offset is another
 */
export function moves(before, after, source) {
  const stored = new Map(before.map((entry) => [key(entry.partition), entry]));
  const found = [];
  for (const entry of after) {
    const known = stored.get(key(entry.partition));
    const was = known && known.offset ? known.offset : null;
    if (key(was) !== key(entry.offset || null)) found.push(`${named(entry.partition)} ${move(was, entry.offset || null, source)}`);
  }
  return found;
}

/** A text that is equal for equal values, in whatever order their fields are. */
function key(value) {
  if (value === null || typeof value !== 'object') return JSON.stringify(value) || 'null';
  return JSON.stringify(Object.keys(value).sort().map((name) => [name, key(value[name])]));
}

const named = (partition) => (partition && partition.kafka_topic !== undefined ? `${partition.kafka_topic}, partition ${partition.kafka_partition}:`
  : `${Object.values(partition || {}).join(', ')}:`);

function move(was, now, source) {
  if (now === null) {
    return was && was.kafka_offset !== undefined
      ? 'its records are read again from where consumer.override.auto.offset.reset says, by default from the first one.'
      : 'the connector starts as if it were new here; whether it takes a snapshot, its snapshot.mode says.';
  }
  if (was === null) return 'nothing was stored here before.';
  const how = [records, transactions, walPosition, binlogPosition, clusterTime, fileBytes].map((each) => each(was, now, source)).find(Boolean);
  return how || 'how much this skips or repeats cannot be told from these offsets.';
}

/** "repeats 3 records": `distance` is positive where the new offset is later. */
const sentence = (distance, amount, more = '') => (distance === 0 ? `stays at the same position.${more}`
  : distance < 0 ? `repeats ${amount(-distance)}.${more}` : `skips ${amount(distance)}, for good.${more}`);

function records(was, now) {
  if (typeof was.kafka_offset !== 'number' || typeof now.kafka_offset !== 'number') return null;
  return sentence(now.kafka_offset - was.kafka_offset, (count) => `${whole(count)} record${count === 1 ? '' : 's'}`);
}

const fileBytes = (was, now) => (typeof was.position !== 'number' || typeof now.position !== 'number' ? null
  : sentence(now.position - was.position, (size) => `${bytes(size)} of the file`));

/** PostgreSQL. The stream starts at `lsn_commit`, `lsn_proc` or `lsn`, the first that is there. */
function walPosition(was, now, source) {
  const at = (offset) => (typeof offset.lsn_proc === 'number' ? offset.lsn_commit || offset.lsn_proc : offset.lsn);
  if (typeof at(was) !== 'number' || typeof at(now) !== 'number') return null;
  const slot = (source && source.facts && source.facts['postgres-slot']) || {};
  const confirmed = slot['confirmed-flush-lsn'];
  const head = slot['current-lsn'];
  const limits = confirmed !== undefined && at(now) < confirmed
    ? ` But the slot begins at ${lsn(Math.round(confirmed))}: the server no longer gives what is before it. A start then fails or takes a snapshot, as snapshot.mode says.`
    : head !== undefined && at(now) > head ? ` But the log ends at ${lsn(Math.round(head))}: what is written until it gets there is skipped, too.` : '';
  return sentence(at(now) - at(was), (size) => `${bytes(size)} of the log`, limits);
}

/** MySQL and MariaDB without GTIDs: files of the log on one scale, as the server lists them. */
function binlogPosition(was, now, source) {
  if (was.file === undefined || now.file === undefined) return null;
  const segments = (source && source.segments) || {};
  const number = (file) => String(Number(String(file).split('.').pop()));
  const at = (offset) => (was.file === now.file ? 0 : segments[number(offset.file)]) + (offset.pos || 0);
  if (!Number.isNaN(at(was)) && !Number.isNaN(at(now))) return sentence(at(now) - at(was), (size) => `${bytes(size)} of the binlog`);
  const unknown = Object.keys(segments).length && segments[number(now.file)] === undefined ? ` The server does not have the file ${now.file}.` : '';
  return `${Number(number(now.file)) < Number(number(was.file)) ? 'repeats' : 'skips'} a part of the binlog whose size is not known.${unknown}`;
}

/** MySQL and MariaDB with GTIDs, by which the server then finds the position: transactions that one set has and the other has not. */
function transactions(was, now) {
  if (!was.gtids || !now.gtids) return null;
  const [a, b] = [gtids(was.gtids), gtids(now.gtids)];
  const words = (count) => `${whole(count)} transaction${count === 1 ? '' : 's'}`;
  const parts = [];
  if (lacking(a, b)) parts.push(`repeats ${words(lacking(a, b))}`);
  if (lacking(b, a)) parts.push(`skips ${words(lacking(b, a))}, for good`);
  return parts.length ? `${parts.join(', and ')}.` : 'has the same transactions.';
}

/** Intervals [first, last] by source: `uuid:1-5:7`, `uuid:tag:1-5`, MariaDB's `domain-server-number`. */
function gtids(text) {
  const found = new Map();
  const add = (name, interval) => found.set(name, [...(found.get(name) || []), interval]);
  for (const part of text.split(',').map((each) => each.trim()).filter(Boolean)) {
    const maria = /^(\d+)-\d+-(\d+)$/.exec(part);
    if (maria) {
      add(maria[1], [1, Number(maria[2])]);
      continue;
    }
    const [uuid, ...rest] = part.split(':');
    let name = uuid.toLowerCase();
    for (const each of rest) {
      const interval = /^(\d+)(?:-(\d+))?$/.exec(each);
      if (interval) add(name, [Number(interval[1]), Number(interval[2] || interval[1])]); else name = `${uuid.toLowerCase()}:${each}`;
    }
  }
  return found;
}

/** How many numbers of `left` are not in `right`; intervals of one set do not overlap. */
function lacking(left, right) {
  let count = 0;
  for (const [name, intervals] of left) {
    for (const [first, last] of intervals) {
      const common = (right.get(name) || []).reduce((sum, [a, b]) => sum + Math.max(0, Math.min(last, b) - Math.max(first, a) + 1), 0);
      count += last - first + 1 - common;
    }
  }
  return count;
}

/** MongoDB: the time inside a resume token, else that of the last event. */
function clusterTime(was, now, source) {
  const at = (offset) => tokenSeconds(offset.resume_token) ?? (offset.sec > 0 ? offset.sec : undefined);
  if (at(was) === undefined || at(now) === undefined) return null;
  const first = source && source.facts && source.facts['mongodb-oplog'] && source.facts['mongodb-oplog']['first-timestamp-seconds'];
  const limits = first && at(now) < first ? ` But the oplog begins ${time(first - at(now))} later: the server no longer has what is before it.` : '';
  return sentence(at(now) - at(was), (seconds) => `${time(seconds)} of changes`, limits);
}

/** Base64 of BSON whose `_data` begins with 82 and the seconds in hexadecimal digits (KeyString of a timestamp); older ones are the digits alone. */
function tokenSeconds(token) {
  if (typeof token !== 'string') return undefined;
  let text = token;
  try {
    if (!/^[0-9a-fA-F]+$/.test(token)) text = atob(token);
  } catch {
    return undefined;
  }
  const found = /82([0-9a-fA-F]{8})[0-9a-fA-F]{8}/.exec(text);
  return found ? parseInt(found[1], 16) : undefined;
}
