// Bandwidth and latency of the last two minutes, one column for each second.
import { bytes, duration, make } from "./dom.js";

const seconds = 120, width = 180, height = 30;

export class Spark {
  constructor() {
    this.canvas = make("canvas", {
      width: width * 2,
      height: height * 2,
      role: "img",
      "aria-label": "bytes and latency of the last two minutes",
    });
    this.text = make("span.quiet");
    this.element = make("span.spark", this.canvas, this.text);
    this.columns = [];
    this.seen = new Set();
    this.timer = setInterval(() => this.turn(), 1000);
  }

  leave() {
    clearInterval(this.timer);
  }

  get now() {
    const second = Math.floor(Date.now() / 1000);
    const last = this.columns[this.columns.length - 1];
    if (last?.second === second) return last;
    const column = { second, count: 0, bytes: 0, longest: 0 };
    this.columns.push(column);
    if (this.columns.length > seconds) this.columns.shift();
    return column;
  }

  add(rows) {
    const now = this.now;
    for (const row of rows) {
      if (row.state !== "ended" || this.seen.has(row.id)) continue;
      this.seen.add(row.id);
      now.count += 1;
      now.bytes += (row.responseSize ?? 0) + (row.requestSize ?? 0);
      if (row.kind === "http") now.longest = Math.max(now.longest, row.duration);
    }
    if (this.seen.size > 20000) this.seen = new Set([...this.seen].slice(-10000));
  }

  turn() {
    void this.now;
    const last = this.columns[this.columns.length - 2];
    if (last) {
      this.text.textContent = `${last.count}/s  ${bytes(last.bytes)}/s` +
        (last.longest ? `  ≤ ${duration(last.longest)}` : "");
    }
    const context = this.canvas.getContext("2d"), style = getComputedStyle(this.canvas);
    const step = width * 2 / seconds, end = Math.floor(Date.now() / 1000);
    context.clearRect(0, 0, width * 2, height * 2);
    const mostBytes = Math.max(1, ...this.columns.map((column) => column.bytes)),
      longest = Math.max(1, ...this.columns.map((column) => column.longest));
    context.fillStyle = style.getPropertyValue("--spark");
    for (const column of this.columns) {
      const tall = column.bytes / mostBytes * height * 2;
      if (tall) {
        context.fillRect(
          (seconds - 1 - (end - column.second)) * step,
          height * 2 - Math.max(2, tall),
          step - 0.6,
          Math.max(2, tall),
        );
      }
    }
    context.strokeStyle = style.getPropertyValue("--spark-line");
    context.lineWidth = 2.5;
    context.beginPath();
    let begun = false;
    for (const column of this.columns) {
      if (!column.longest) {
        begun = false;
        continue;
      }
      const x = (seconds - 0.5 - (end - column.second)) * step,
        y = height * 2 - 3 - column.longest / longest * (height * 2 - 6);
      if (begun) context.lineTo(x, y);
      else {
        context.moveTo(x, y);
        context.lineTo(x + 0.1, y);
      }
      begun = true;
    }
    context.stroke();
  }
}
