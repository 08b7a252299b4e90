// A chart of one or two lines over time.
import { clock, make } from "./dom.js";

const shortest = 120000; // the least time from the left edge to the right one, in milliseconds

/** A value with as many digits as it needs. */
export function nice(value) {
  if (value >= 100) return Math.round(value);
  return value.toFixed(value >= 1 ? 1 : 2);
}

/** The steps between times of the axis, in milliseconds. */
const steps = [10, 30, 60, 300, 600, 900, 1800].map((seconds) => seconds * 1000);
const mostTimes = 5;

/** The times of the axis between two times. */
export function timesOf(start, end) {
  const step = steps.find((step) => (end - start) / step <= mostTimes) ?? 3600000, times = [];
  for (let time = Math.ceil(start / step) * step; time <= end; time += step) times.push(time);
  return times;
}

export class Chart {
  /** `href` leads to the requests behind the chart. */
  constructor(title, href) {
    this.canvas = make("canvas", { role: "img", "aria-label": title });
    this.last = make("b");
    const more = href ? make("a", { href }, "requests") : null;
    this.element = make("figure", make("figcaption", title + "  ", this.last, more ? ["  ", more] : null), this.canvas);
  }

  /** Draws the values under `keys` of the points, which have a `time`; a value that is not finite leaves a gap. */
  draw(points, keys) {
    const canvas = this.canvas, last = points[points.length - 1];
    const width = canvas.clientWidth * devicePixelRatio, height = canvas.clientHeight * devicePixelRatio;
    if (!width || !height) return;
    canvas.width = width;
    canvas.height = height;
    const highest = Math.max(0, ...points.flatMap((point) => valuesOf(point, keys)));
    const end = last?.time ?? 0, span = Math.max(shortest, end - (points[0]?.time ?? 0));
    const foot = 15 * devicePixelRatio, frame = height - foot - 16 * devicePixelRatio;
    const x = (time) => width - (end - time) / span * width;
    const y = (value) => height - foot - value / (highest || 1) * frame;
    this.drawGrid(width, highest, y);
    this.drawTimes(timesOf(end - span, end), x, height);
    keys.forEach((key, index) => {
      const line = points.map((point) => ({ x: x(point.time), y: y(point[key]) }));
      this.drawLine(line, index ? "--spark-line" : "--accent");
    });
    this.last.textContent = valuesOf(last, keys).map(nice).join(" · ");
  }

  drawGrid(width, highest, y) {
    const context = this.canvas.getContext("2d");
    context.font = `${11 * devicePixelRatio}px system-ui`;
    context.fillStyle = this.style("--quiet");
    context.strokeStyle = this.style("--line");
    context.lineWidth = devicePixelRatio;
    for (const part of [0, 0.5, 1]) {
      const value = (highest || 1) * part;
      context.beginPath();
      context.moveTo(0, y(value));
      context.lineTo(width, y(value));
      context.stroke();
      if (part && highest) context.fillText(nice(value), 2, y(value) - 3);
    }
  }

  drawTimes(times, x, height) {
    const context = this.canvas.getContext("2d");
    context.fillStyle = this.style("--quiet");
    for (const time of times) {
      const text = clock(time).slice(0, time % 60000 ? 8 : 5), half = context.measureText(text).width / 2;
      const place = Math.max(0, Math.min(this.canvas.width - 2 * half, x(time) - half));
      context.fillText(text, place, height - 3 * devicePixelRatio);
    }
  }

  drawLine(line, style) {
    const context = this.canvas.getContext("2d");
    context.strokeStyle = this.style(style);
    context.lineWidth = 1.6 * devicePixelRatio;
    context.fillStyle = this.style(style);
    context.beginPath();
    const isShown = (place) => Number.isFinite(line[place]?.y), side = 3 * devicePixelRatio;
    line.forEach(({ x, y }, place) => {
      if (!isShown(place)) return;
      if (isShown(place - 1)) context.lineTo(x, y);
      else context.moveTo(x, y);
      // A value between two gaps is a dot.
      if (!isShown(place - 1) && !isShown(place + 1)) context.fillRect(x - side / 2, y - side / 2, side, side);
    });
    context.stroke();
  }

  style(name) {
    return getComputedStyle(this.canvas).getPropertyValue(name);
  }
}

const valuesOf = (point, keys) => keys.map((key) => point?.[key]).filter(Number.isFinite);
