import { Button, Modal } from '@mantine/core';
import type { Environment } from '../api/schema';
import { amountOf, dollars } from '../kinds/prices';
import { useRequests } from '../state/requests';
import { useKindMetadata } from '../state/useKindMetadata';

interface Props {
  environment: Environment;
  opened: boolean;
  close: () => void;
}

/** Names the kept and the lost data before the environment is stopped. */
export function StopDialog({ environment, opened, close }: Props) {
  const { name, price } = environment;
  const { whenStopped } = useKindMetadata(environment);
  const { send } = useRequests(environment);
  const stopped = amountOf(price?.stoppedHourlyUSD);
  return (
    <Modal
      opened={opened}
      onClose={close}
      title={`Stop ${name}?`}
      closeButtonProps={{ 'aria-label': 'Close' }}
      centered
    >
      <div className="stack">
        <p>Running work is lost. {whenStopped}</p>
        <p>
          {stopped === undefined
            ? 'The price while stopped is unknown.'
            : `While stopped, it costs about ${dollars(stopped)} per hour.`}
        </p>
        <div className="buttons end">
          <Button variant="default" onClick={close} data-autofocus>
            Cancel
          </Button>
          <Button
            onClick={() => {
              close();
              send('stop');
            }}
          >
            Stop environment
          </Button>
        </div>
      </div>
    </Modal>
  );
}
