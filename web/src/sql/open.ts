/** The parameter sql of an address where the drawer is open, but nothing is asked: a comment of SQL. */
export const nothing = '--';
