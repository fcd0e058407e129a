import { Alert, Button } from '@mantine/core';
import { isMarked, isOverBudget, Refused, words } from '../api/problem';
import { Icon } from './Icon';

interface Props {
  title: string;
  error: unknown;
  again?: () => void;
  /** Whether a form marks the errors of its fields. */
  marked?: boolean;
}

/** The title of a rejection by the preview. `anyway` is the way to send the document all the same. */
export function rejection(error: Refused, anyway: string): string {
  return isOverBudget(error)
    ? 'This would exceed the budget'
    : `This would be rejected. Fix the marked fields, or ${anyway}.`;
}

/** An error with the server's message, and the request's id for a search in the logs. */
export function ProblemAlert({ title, error, again, marked }: Props) {
  const id = error instanceof Refused ? error.problem.requestId : undefined;
  return (
    <Alert color="red" variant="light" title={title} icon={<Icon name="alert" />} role="alert">
      {/* The form shows the errors at their fields. */}
      {!(marked && error instanceof Refused && isMarked(error)) && (
        <p className="words">{words(error)}</p>
      )}
      {(id || again) && (
        <p className="small">
          {id && <>Request {id}</>}{' '}
          {again && (
            <Button size="compact-sm" variant="default" onClick={again}>
              Try again
            </Button>
          )}
        </p>
      )}
    </Alert>
  );
}
