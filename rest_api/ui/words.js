/** Numbers in words. No function here asks or draws anything. */

/** 1,234,567 */
export const whole = (number) => Math.round(number).toLocaleString('en');

/** 1.2 k, 3.4 M */
export function short(number) {
  for (const [size, name] of [[1e9, ' G'], [1e6, ' M'], [1e4, ' k']]) {
    if (number >= size) return `${three(number / (name === ' k' ? 1e3 : size))}${name}`;
  }
  return number >= 100 || Number.isInteger(number) ? whole(number) : three(number);
}

const three = (number) => String(Number(number.toPrecision(3)));

/** 512 B, 48 MB: as the worker writes sizes in its log. */
export function bytes(size) {
  if (size === null || size === undefined || Number.isNaN(size)) return '–';
  for (const [scale, name] of [[1e12, 'TB'], [1e9, 'GB'], [1e6, 'MB'], [1e3, 'kB']]) {
    if (size >= scale) return `${three(size / scale)} ${name}`;
  }
  return `${Math.round(size)} B`;
}

/** 40 s, 4 min 10 s, 3 h 5 min, 2 d 4 h */
export function time(seconds) {
  if (seconds === null || seconds === undefined || Number.isNaN(seconds)) return '–';
  if (seconds < 1) return seconds <= 0 ? '0 s' : `${Math.round(seconds * 1000)} ms`;
  const parts = [[86400, 'd'], [3600, 'h'], [60, 'min'], [1, 's']];
  const first = parts.findIndex(([size]) => seconds >= size);
  const [size, name] = parts[first];
  const rest = Math.floor((seconds % size) / (parts[first + 1] || [Infinity])[0]);
  return `${Math.floor(seconds / size)} ${name}${rest && first < 3 ? ` ${rest} ${parts[first + 1][1]}` : ''}`;
}

/** A rate of records. */
export const rate = (value) => (value === null || value === undefined ? '–' : `${short(value)}/s`);

/** "2 min 10 s, 48 MB": how far a connector is behind. */
export function behind(found) {
  if (!found) return '–';
  const parts = [];
  if (found.seconds !== undefined) parts.push(time(found.seconds));
  if (found.records) parts.push(`${whole(found.records)} records`);
  if (found.distance > 0 || (found.distance === 0 && !parts.length)) parts.push(found.unit === 'seconds' ? time(found.distance) : bytes(found.distance));
  return parts.join(', ') || '–';
}

/** The date of seconds since 1970, in this browser's time zone. */
export function date(seconds) {
  if (!seconds || seconds < 0) return '–';
  const at = new Date(seconds * 1000);
  const two = (number) => String(number).padStart(2, '0');
  return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())} ${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
}

/** 10:31:05, of seconds since 1970. */
export const clock = (seconds) => date(seconds).slice(11);

const PRODUCTS = { Postgres: 'PostgreSQL', MySql: 'MySQL', MariaDb: 'MariaDB', MongoDb: 'MongoDB', Jdbc: 'JDBC', SparkLakehouse: 'Lakehouse', FileStream: 'File' };

/** A class without what its type says too: File, PostgreSQL. */
export function shortClass(name) {
  const short = (name || '').split('.').pop().replace(/(?!^)(Source|Sink)?(Connector)?$/, '') || '–';
  return PRODUCTS[short] || short;
}

/** Words that are worse come first in the list. */
const ORDER = ['failed', 'stalled', 'waiting for Kafka', 'disconnected', 'unassigned', 'behind', 'restarting', 'starting', 'snapshotting'];

export const severity = (verdict) => {
  const place = ORDER.indexOf(verdict);
  return place < 0 ? ORDER.length : place;
};

/** The colour of a verdict: bad, warn, good, quiet. */
export function tone(verdict) {
  const place = severity(verdict);
  if (place <= 1) return 'bad';
  if (place <= 5) return 'warn';
  if (['paused', 'stopped', 'idle', 'unknown'].includes(verdict)) return 'quiet';
  return 'good';
}

/** What an offset says, for people: a list of [what, value]. */
export function offsetWords(offset) {
  if (!offset) return [['', 'removed']];
  const found = [];
  const at = (name) => (offset[name] === undefined || offset[name] === null ? null : offset[name]);
  if (at('lsn') !== null) found.push(['log position (LSN)', lsn(at('lsn'))]);
  if (at('file') !== null) found.push(['binlog position', `${at('file')}, byte ${whole(at('pos') || 0)}`]);
  if (at('gtids')) found.push(['transactions (GTID)', String(at('gtids'))]);
  if (at('txId') !== null) found.push(['transaction', String(at('txId'))]);
  if (at('position') !== null) found.push(['byte of the file', whole(at('position'))]);
  if (at('kafka_offset') !== null) found.push(['next record', whole(at('kafka_offset'))]);
  const seconds = at('ts_usec') ? at('ts_usec') / 1e6 : at('ts_sec') || at('sec');
  if (seconds) found.push(['time of the last event', date(seconds)]);
  if (at('snapshot') !== null && at('snapshot') !== false) found.push(['snapshot', at('snapshot_completed') ? 'completed' : 'not completed']);
  return found;
}

/** A PostgreSQL position as the server writes it: 0/1884B00. */
export function lsn(number) {
  const text = BigInt(number).toString(16).toUpperCase().padStart(9, '0');
  return `${text.slice(0, -8).replace(/^0+(?=.)/, '')}/${text.slice(-8).replace(/^0+(?=.)/, '')}`;
}
