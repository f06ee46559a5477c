/** The sql parameter of an open drawer without a statement: an SQL comment. */
export const nothing = '--';
