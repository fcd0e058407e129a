/** The addresses that the scenario passes to the specifications. */
interface World {
  ada: Account;
  bob: Account;
  /** The URL for requests to the control plane that no page offers. */
  remote: string;
}

/** A person's login at the OpenID provider, and the replica of the portal that this person uses. */
export interface Account {
  login: string;
  portal: string;
}

const text = process.env['PAVED_ROAD_WORLD'];
if (!text) throw new Error('The specifications need a control plane. Run: cargo xtask e2e people_use_the_pages');

export const world = JSON.parse(text) as World;
