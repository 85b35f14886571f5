/// Keys of a listener's `tls`.
package enum ServerTLSKey: String, CaseIterable, Sendable {
    case certificate
    case key
    case password
    case passwordFile = "password-file"
    case certificates
    case clientCA = "client-ca"
    case clientAuth = "client-auth"
    case clientCRL = "client-crl"
    case alpn
    case minVersion = "min-version"
    case records
    case keyLog = "key-log"
}
