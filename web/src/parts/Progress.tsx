import { progressOf, type Mood } from '../kinds/mood';

/** The number of ready resources, or of deleted resources during a deletion. */
export function Progress({ text, mood }: { text: string; mood: Mood }) {
  const progress = progressOf(text);
  const what = mood === 'leaving' ? 'deleted' : 'ready';
  const label = progress
    ? `${progress.done} of ${progress.of} resources ${what}`
    : 'No resources yet';
  return (
    <div className="progress" data-mood={mood}>
      <progress aria-label={label} value={progress?.done ?? 0} max={progress?.of ?? 1} />
      <span aria-hidden="true" title={label}>
        {progress ? text : '–'}
      </span>
    </div>
  );
}
