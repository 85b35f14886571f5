import COpenSSL

/// The roots and revocation lists of one context, as they were when it was made.
@safe
final class TrustStore {
    /// An X509_STORE, ours.
    let handle: OpaquePointer
    /// Names this trust: contexts with the same digest may resume each other's sessions.
    private(set) var digest: [UInt8] = []

    init(_ configuration: TLSConfiguration) throws(TLSFailure) {
        ErrorQueue.clear()
        guard let handle = unsafe X509_STORE_new() else { throw ErrorQueue.failure(.engine, "no memory") }
        unsafe self.handle = handle
        var marks: [UInt8] = Array("\(configuration.peerVerification) \(configuration.asksForDecision)".utf8)
        marks.append(
            contentsOf: "\(configuration.checksServerName) \(configuration.pins.map(\.description).sorted())".utf8)
        if configuration.needsRoots {
            marks.append(contentsOf: "\(configuration.trust.includesSystem)".utf8)
            try self.addRoots(configuration.trust, marks: &marks)
        }
        try self.addRevocationLists(configuration.revocation, marks: &marks)
        self.digest = CertificateFields.sha256(marks)
    }

    deinit {
        unsafe X509_STORE_free(self.handle)
    }

    private func addRoots(_ trust: TrustAnchors, marks: inout [UInt8]) throws(TLSFailure) {
        if trust.includesSystem, unsafe !SystemRoots.add(to: self.handle) {
            throw TLSFailure(
                .unreadableMaterial, reasons: ["this system has no trusted roots in any of the usual places"])
        }
        for source in trust.extra {
            let reader = try source.reader()
            unsafe try reader.eachCertificate { certificate in
                unsafe X509_STORE_add_cert(self.handle, certificate)
                unsafe marks.append(contentsOf: CertificateFields.derBytes(of: certificate))
            }
        }
    }

    private func addRevocationLists(_ revocation: RevocationChecking, marks: inout [UInt8]) throws(TLSFailure) {
        for source in revocation.lists {
            let reader = try source.reader()
            unsafe try reader.eachRevocationList { list in
                unsafe X509_STORE_add_crl(self.handle, list)
                unsafe marks.append(contentsOf: CertificateFields.derBytes(ofRevocationList: list))
            }
        }
    }
}

extension TLSConfiguration {
    /// Whether a chain is ever followed to a root.
    var needsRoots: Bool { self.peerVerification != .none }
}

extension CertificateSource {
    func reader() throws(TLSFailure) -> MaterialReader {
        switch self {
        case .pem(let bytes), .der(let bytes): try MaterialReader(bytes: bytes)
        case .file(let path): try MaterialReader(file: path)
        }
    }
}
