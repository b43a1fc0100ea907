/**
 * A self-signed certificate for 127.0.0.1 and localhost, valid until 2126, and its key: for the
 * tests of TLS, and secret to nobody.
 *
 *   openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes \
 *     -keyout key.pem -out cert.pem -days 36500 \
 *     -subj "/CN=rowpost test" -addext "subjectAltName=IP:127.0.0.1,DNS:localhost"
 */
export const TEST_CERTIFICATE = `-----BEGIN CERTIFICATE-----
MIIBoTCCAUegAwIBAgIUKtNTNwrrAuJLVTOADi5pApFTtn0wCgYIKoZIzj0EAwIw
FzEVMBMGA1UEAwwMcm93cG9zdCB0ZXN0MCAXDTI2MTEyMTExNTAyNloYDzIxMjYx
MDI4MTE1MDI2WjAXMRUwEwYDVQQDDAxyb3dwb3N0IHRlc3QwWTATBgcqhkjOPQIB
BggqhkjOPQMBBwNCAATAJ5sc/CB/AokkpVllLO6DCdeAOku9R6ifGSNOgaT8Z0gc
6ZRrbnz2jbI2qCKpUSlvWWFCX0KOZr36gQwIlpvEo28wbTAdBgNVHQ4EFgQUSsbT
PSDJMmpPbXHggpro5TpZv3AwHwYDVR0jBBgwFoAUSsbTPSDJMmpPbXHggpro5TpZ
v3AwDwYDVR0TAQH/BAUwAwEB/zAaBgNVHREEEzARhwR/AAABgglsb2NhbGhvc3Qw
CgYIKoZIzj0EAwIDSAAwRQIgeY+1WTuHqO6u3jXZIJ6X4o0p9wxTnGwqk1G3LRBv
nzICIQC3WLRWExDp4kReqV8byTvtS6yzLVtFYS7Sey9EJZKOfA==
-----END CERTIFICATE-----
`;

export const TEST_KEY = `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgWGY7cEsnbCz/j0Cx
IP/qEppljXLe3LnuObhbidYLh4OhRANCAATAJ5sc/CB/AokkpVllLO6DCdeAOku9
R6ifGSNOgaT8Z0gc6ZRrbnz2jbI2qCKpUSlvWWFCX0KOZr36gQwIlpvE
-----END PRIVATE KEY-----
`;
