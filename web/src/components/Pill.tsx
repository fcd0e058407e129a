import type { Tone } from '../kinds/tone';
import { toLabel } from '../kinds/format';
import { Icon } from './Icon';

const ICONS = {
  good: 'check',
  busy: 'clock',
  bad: 'alert',
  leaving: 'trash',
  idle: 'pause',
} as const;

/** A status tone as word, icon and colour. */
export function Pill({ tone, word }: { tone: Tone; word: string }) {
  return (
    <span className="pill" data-tone={tone}>
      <Icon name={ICONS[tone]} size={13} />
      {toLabel(word)}
    </span>
  );
}

/** The icon alone. The word is next to it, or for screen readers only. */
export function Dot({ tone, word }: { tone: Tone; word: string }) {
  return (
    <span className="dot" data-tone={tone}>
      <Icon name={ICONS[tone]} size={14} />
      <span className="unseen">{word}</span>
    </span>
  );
}
