// Bytes as people read them.

/** Lines of 16 bytes from `from` to `to`: their place, their values, and their characters, or `other` for the rest. */
export function hexText(data, from = 0, to = data.length, other = "·") {
  const lines = [];
  for (let index = from; index < to; index += 16) {
    const part = [...data.subarray(index, Math.min(index + 16, to))];
    const values = part.map((byte) => byte.toString(16).padStart(2, "0")).join(" ");
    const characters = part.map((byte) => byte > 31 && byte < 127 ? String.fromCharCode(byte) : other).join("");
    lines.push(index.toString(16).padStart(8, "0") + "  " + values.padEnd(48) + " " + characters);
  }
  return lines.join("\n");
}
