/** A plot of some series over time, drawn by uPlot in the page's colours. */
import { html, useEffect, useRef, useState } from './vendor/htm-preact.js';

const uPlot = window.uPlot;
const together = uPlot.sync('history');
const dark = matchMedia('(prefers-color-scheme: dark)');

/** True while the system asks for dark colours. */
function useDark() {
  const [isDark, setDark] = useState(dark.matches);
  useEffect(() => {
    const note = () => setDark(dark.matches);
    dark.addEventListener('change', note);
    return () => dark.removeEventListener('change', note);
  }, []);
  return isDark;
}

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/**
 * @param {{title: string, times: number[], lines: {label: string, values: (number|null)[], right?: boolean}[],
 *   format: (value: number) => string, formatRight?: (value: number) => string}} props
 */
export function Plot({ title, times, lines, format, formatRight }) {
  const place = useRef(null);
  const drawn = useRef(null);
  const isDark = useDark();
  const hasRight = lines.some((line) => line.right);
  const shape = `${isDark}${lines.map((line) => line.label)}`;
  const data = [times, ...lines.map((line) => line.values)];
  useEffect(() => {
    const axis = { stroke: colour('--muted'), grid: { stroke: colour('--line'), width: 1 }, ticks: { show: false }, font: '11px system-ui' };
    const words = (how) => (self, values) => values.map((value) => (value === null ? '' : how(value))).map((word, at, all) => (word === all[at - 1] ? '' : word));
    const options = {
      width: place.current.clientWidth,
      height: 170,
      cursor: { sync: { key: together.key }, points: { size: 6 }, drag: { x: false, y: false } },
      legend: { live: true },
      hooks: { setCursor: [(self) => showLast(self)] },
      scales: { x: { time: true }, y: { range: fromZero }, r: { range: fromZero } },
      axes: [
        { ...axis, space: 70, size: 28, values: clock },
        { ...axis, size: 70, values: words(format) },
        ...(hasRight ? [{ ...axis, side: 1, scale: 'r', size: 70, grid: { show: false }, values: words(formatRight) }] : []),
      ],
      series: [
        { value: (self, at) => (at === null ? '' : new Date(at * 1000).toLocaleTimeString('en-GB')) },
        ...lines.map((line, at) => ({
          label: line.label,
          scale: line.right ? 'r' : 'y',
          stroke: colour(`--line-${at + 1}`),
          width: 1.5,
          dash: at % 2 ? [5, 3] : undefined,
          points: { show: false },
          value: (self, value) => (value === null || value === undefined ? '–' : (line.right ? formatRight : format)(value)),
        })),
      ],
    };
    drawn.current = new uPlot(options, data, place.current);
    const watched = new ResizeObserver(() => {
      if (place.current && place.current.clientWidth) drawn.current.setSize({ width: place.current.clientWidth, height: 170 });
    });
    watched.observe(place.current);
    return () => {
      watched.disconnect();
      drawn.current.destroy();
    };
  }, [shape]);
  useEffect(() => {
    if (!drawn.current) return;
    drawn.current.setData(data);
    showLast(drawn.current);
  }, [times, lines]);
  return html`<figure class="plot"><figcaption>${title}</figcaption>
    <div ref=${place} role="img" aria-label=${inWords(title, lines, format, formatRight)}></div></figure>`;
}

/** What a plot shows, for people who do not see it: the last value of each line. */
function inWords(title, lines, format, formatRight) {
  const last = lines.map((line) => {
    const known = line.values.filter((value) => value !== null);
    return `${line.label} ${known.length ? (line.right ? formatRight : format)(known[known.length - 1]) : 'not measured'}`;
  });
  return `${title}: ${last.join(', ')}`;
}

/** While the pointer is elsewhere, the legend shows the last values. */
function showLast(plot) {
  if (plot.cursor.left >= 0) return;
  let idx = plot.data[0].length - 1;
  while (idx > 0 && plot.data.slice(1).every((values) => values[idx] === null)) idx -= 1;
  plot.setLegend({ idx }, false);
}

function fromZero(self, low, high) {
  return [0, high > 0 ? high * 1.1 : 1];
}

const two = (number) => String(number).padStart(2, '0');

/** The axis of time, 24 hours; seconds only where they differ. */
function clock(self, times) {
  const isFine = times.length > 1 && times[1] - times[0] < 60;
  return times.map((at) => {
    const when = new Date(at * 1000);
    return `${two(when.getHours())}:${two(when.getMinutes())}${isFine ? `:${two(when.getSeconds())}` : ''}`;
  });
}
