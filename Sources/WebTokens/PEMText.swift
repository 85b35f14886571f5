import TLSEngine
import WireText

/// The public keys and certificates in a PEM text (RFC 7468). Text between the blocks is ignored.
enum PEMText {
    static func isPEM(_ bytes: [UInt8]) -> Bool {
        String(decoding: bytes, as: UTF8.self).contains("-----BEGIN ")
    }

    static func keys(_ bytes: [UInt8]) throws(TokenKeyProblem) -> [TokenKey] {
        var keys: [TokenKey] = []
        var label: String?
        var body: [UInt8] = []
        for line in bytes.split(whereSeparator: { $0 == 0x0A || $0 == 0x0D }) {
            let text = String(decoding: line, as: UTF8.self)
            if let name = Self.label(text, "-----BEGIN ") {
                label = name
                body = []
            } else if let name = label, Self.label(text, "-----END ") == name {
                guard let der = Base64.decodedForgivingly(body) else {
                    throw TokenKeyProblem("the block “\(name)” is not base64")
                }
                keys.append(try self.key(label: name, der))
                label = nil
            } else if label != nil {
                body += line
            }
        }
        if let label { throw TokenKeyProblem("the block “\(label)” has no end") }
        return keys
    }

    private static func label(_ line: String, _ prefix: String) -> String? {
        var line = line[...]
        while let last = line.last, last == " " || last == "\t" { line.removeLast() }
        guard line.hasPrefix(prefix), line.hasSuffix("-----"), line.count >= prefix.count + 5 else { return nil }
        return String(line.dropFirst(prefix.count).dropLast(5))
    }

    private static func key(label: String, _ der: [UInt8]) throws(TokenKeyProblem) -> TokenKey {
        let key: PublicKey?
        do throws(TLSFailure) {
            switch label {
            case "PUBLIC KEY": key = try PublicKey(subjectPublicKeyInfo: der)
            case "RSA PUBLIC KEY": key = try PublicKey(subjectPublicKeyInfo: DER.rsaPublicKey(pkcs1: der))
            case "CERTIFICATE": key = try PublicKey(certificate: der)
            default: key = nil
            }
        } catch {
            throw TokenKeyProblem("the block “\(label)” \(error)")
        }
        if let key { return try TokenKey(key) }
        guard !label.hasSuffix("PRIVATE KEY") else {
            throw TokenKeyProblem(
                "the block “\(label)” holds a private key, which only the issuer of tokens needs; "
                    + "“openssl pkey -pubout” writes its public key")
        }
        throw TokenKeyProblem("the block “\(LogText.shortened(label))” is neither a public key nor a certificate")
    }
}
