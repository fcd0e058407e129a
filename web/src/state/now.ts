import { atom } from 'jotai';

const tick = atom(Date.now());

/** The time, at most a few seconds old. All relative times change together. */
export const nowAtom = atom((get) => get(tick));

tick.onMount = (set) => {
  set(Date.now());
  const timer = setInterval(() => set(Date.now()), 5_000);
  return () => clearInterval(timer);
};
