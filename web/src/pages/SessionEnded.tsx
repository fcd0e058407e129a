import { Button, Modal } from '@mantine/core';
import { signIn } from './SignIn';

/** A dialog over the page after the session expired. The user's input stays visible. */
export default function SessionEnded() {
  return (
    <Modal
      opened
      onClose={() => undefined}
      withCloseButton={false}
      closeOnEscape={false}
      closeOnClickOutside={false}
      title="Your session has ended"
      centered
    >
      <div className="stack">
        <p>Sign in again to return to this page. Your input is kept.</p>
        <Button component="a" href={signIn()} fullWidth data-autofocus>
          Sign in again
        </Button>
      </div>
    </Modal>
  );
}
