import Foundation
import TLSEngine

/// A certificate with its chain and private key, to be shown to servers that ask: the role of `SecIdentity`.
public final class ClientIdentity: Sendable {
    package let identity: TLSIdentity

    /// - Parameters:
    ///   - certificates: PEM text, our certificate first, then its chain; or DER of one certificate.
    ///   - key: PEM or DER.
    ///   - password: for an encrypted key.
    /// - Throws: a `TLSFailure` when the material cannot be read or the key is not the certificate's.
    public init(certificates: Data, key: Data, password: String? = nil) throws {
        self.identity = try TLSIdentity(certificates: [UInt8](certificates), key: [UInt8](key), password: password)
    }

    /// - Parameter pkcs12: a container with the certificate, its chain and its key.
    /// - Throws: a `TLSFailure` when the container cannot be read or the password is wrong.
    public init(pkcs12: Data, password: String? = nil) throws {
        self.identity = try TLSIdentity(pkcs12: [UInt8](pkcs12), password: password)
    }
}
