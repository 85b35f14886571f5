/// Versions of TLS as older programs name them.
public enum SSLProtocol: Int32, Sendable {
    case sslProtocolUnknown = 0
    case tlsProtocol1 = 4
    case tlsProtocol11 = 7
    case tlsProtocol12 = 8
    case tlsProtocol13 = 10

    init(_ version: tls_protocol_version_t) {
        self =
            switch version {
            case .TLSv10: .tlsProtocol1
            case .TLSv11: .tlsProtocol11
            case .TLSv12: .tlsProtocol12
            case .TLSv13: .tlsProtocol13
            case .DTLSv10, .DTLSv12: .sslProtocolUnknown
            }
    }

    var version: tls_protocol_version_t? {
        switch self {
        case .sslProtocolUnknown: nil
        case .tlsProtocol1: .TLSv10
        case .tlsProtocol11: .TLSv11
        case .tlsProtocol12: .TLSv12
        case .tlsProtocol13: .TLSv13
        }
    }
}
