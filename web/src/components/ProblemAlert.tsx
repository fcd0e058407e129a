import { Alert, Button } from '@mantine/core';
import { Refused, words } from '../api/problem';
import { Icon } from './Icon';

interface Props {
  title: string;
  error: unknown;
  again?: () => void;
}

/** The title of a rejection by the preview. `marked`: whether fields of the form have its errors. */
export function rejection(marked: boolean, anyway: string): string {
  return `This would be rejected. ${marked ? 'Fix the marked fields' : 'Change the form'}, or ${anyway}.`;
}

/** An error with the server's message, and the request's id for a search in the logs. */
export function ProblemAlert({ title, error, again }: Props) {
  const id = error instanceof Refused ? error.problem.requestId : undefined;
  return (
    <Alert color="red" variant="light" title={title} icon={<Icon name="alert" />} role="alert">
      <p className="words">{words(error)}</p>
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
