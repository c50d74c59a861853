/** The header with which a client sends its key, and an operator a token. Without one it is that of an unknown key. */
export const bearer = (secret: string | undefined) => ({ Authorization: `Bearer ${secret}` });
