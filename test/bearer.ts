/** The header with which a client sends its key, and an operator a token. */
export const bearer = (secret: string) => ({ Authorization: `Bearer ${secret}` });
