import type { Mood } from '../kinds/tone';
import { humane } from '../kinds/format';
import { Icon } from './Icon';

const ICONS = {
  good: 'check',
  busy: 'clock',
  bad: 'alert',
  leaving: 'trash',
  idle: 'pause',
} as const;

/** How something fares, in a word, a sign and a colour. */
export function Pill({ mood, word }: { mood: Mood; word: string }) {
  return (
    <span className="pill" data-mood={mood}>
      <Icon name={ICONS[mood]} size={13} />
      {humane(word)}
    </span>
  );
}

/** The sign alone; the word stands beside it or is read out. */
export function Dot({ mood, word }: { mood: Mood; word: string }) {
  return (
    <span className="dot" data-mood={mood}>
      <Icon name={ICONS[mood]} size={14} />
      <span className="unseen">{word}</span>
    </span>
  );
}
