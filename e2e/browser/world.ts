/** Where everything is: the scenario says it. */
interface World {
  ada: Account;
  bob: Account;
  /** Where the control plane is asked for what nobody can do at a page. */
  remote: string;
}

/** How somebody is called at the OpenID provider, and the replica of the portal that they go to. */
export interface Account {
  login: string;
  portal: string;
}

const told = process.env['PAVED_ROAD_WORLD'];
if (!told) throw new Error('Specifications are played on a control plane: cargo xtask e2e people_use_the_pages');

export const world = JSON.parse(told) as World;
