import type { Mood } from '../kinds/mood';
import { humane } from '../kinds/words';
import { Icon } from './Icon';

const ICONS = {
  good: 'check',
  busy: 'clock',
  bad: 'alert',
  leaving: 'trash',
  idle: 'pause',
} as const;

/** A mood as word, icon and colour. */
export function Pill({ mood, word }: { mood: Mood; word: string }) {
  return (
    <span className="pill" data-mood={mood}>
      <Icon name={ICONS[mood]} size={13} />
      {humane(word)}
    </span>
  );
}

/** The icon alone. The word is next to it, or for screen readers only. */
export function Dot({ mood, word }: { mood: Mood; word: string }) {
  return (
    <span className="dot" data-mood={mood}>
      <Icon name={ICONS[mood]} size={14} />
      <span className="unseen">{word}</span>
    </span>
  );
}
