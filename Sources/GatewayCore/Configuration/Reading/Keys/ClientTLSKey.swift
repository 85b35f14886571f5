/// Keys of an upstream's `tls`.
package enum ClientTLSKey: String, CaseIterable, Sendable {
    case ca
    case crl
    case certificate
    case key
    case password
    case passwordFile = "password-file"
    case serverName = "server-name"
    case insecure
    case pins
    case alpn
    case minVersion = "min-version"
    case keyLog = "key-log"
}
