// Figures as a person reads them: three digits and a unit, never more.

const UNITS = ["B", "kB", "MB", "GB", "TB"];

export function data(amount) {
  if (amount === null || amount === undefined) return "–";
  let unit = 0;
  while (amount >= 999.5 && unit < UNITS.length - 1) {
    amount /= 1000;
    unit += 1;
  }
  const digits = unit === 0 || amount >= 99.95 ? 0 : amount >= 9.995 ? 1 : 2;
  return `${amount.toFixed(digits)} ${UNITS[unit]}`;
}

export const speed = (bytesPerS) => (bytesPerS === null || bytesPerS === undefined ? "–" : `${data(bytesPerS)}/s`);

export const count = (number) => (number === null || number === undefined ? "–" : number.toLocaleString("en"));

export const plural = (number, noun) => `${count(number)} ${noun}${number === 1 ? "" : "s"}`;

export const percent = (share) => `${Math.round(share * 100)} %`;

export const time = (seconds) => new Date(seconds * 1000).toLocaleTimeString([], { hour12: false });

export const minute = (seconds) =>
  new Date(seconds * 1000).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", hour12: false });

export const moment = (seconds) => new Date(seconds * 1000).toISOString();
