import TLSEngine
import WireText

/// Reads a JSON Web Key Set or a single key (RFC 7517).
enum JSONWebKeys {
    /// Members of one key that concern the verification of signatures.
    private struct Members {
        var texts: [String: String] = [:]
        var operations: [String]?
        var hasDuplicates = false

        subscript(_ name: String) -> String? { self.texts[name] }

        /// A number or byte string in base64url.
        func bytes(_ name: String) throws(TokenKeyProblem) -> [UInt8] {
            guard let text = self.texts[name] else { throw TokenKeyProblem("has no “\(name)”") }
            guard let bytes = Base64.decodedURLSafe(text.utf8) else {
                throw TokenKeyProblem("has a “\(name)” that is not base64url without padding")
            }
            return bytes
        }
    }

    private static let textMembers: Set<MemberName> = ["kty", "kid", "alg", "use", "n", "e", "crv", "x", "y", "k"]

    static func read(_ bytes: [UInt8], allowsSecrets: Bool) throws(TokenKeyProblem) -> TokenKeySet {
        guard let text = String(validating: bytes, as: UTF8.self) else {
            throw TokenKeyProblem("the key set is not UTF-8")
        }
        let found: [Members]
        do throws(JSONSyntaxError) {
            found = try self.members(Array(text.utf8))
        } catch {
            throw TokenKeyProblem("the key set is no JSON object with an array “keys”: \(error)")
        }
        guard found.count <= TokenKeySet.countLimit else {
            throw TokenKeyProblem("the key set has \(found.count) keys, more than \(TokenKeySet.countLimit)")
        }
        var set = TokenKeySet([])
        for (index, members) in found.enumerated() {
            let name = members["kid"].map { "key “\(LogText.shortened($0))”" } ?? "key \(index + 1)"
            do throws(TokenKeyProblem) {
                if let reason = self.reasonToIgnore(members, allowsSecrets: allowsSecrets) {
                    set.ignored.append("\(name): \(reason)")
                } else {
                    set.keys.append(try self.key(members))
                }
            } catch {
                set.refused.append("\(name): \(error)")
            }
        }
        return set
    }

    private static func members(_ bytes: [UInt8]) throws(JSONSyntaxError) -> [Members] {
        var reader = JSONReader(bytes, maximumDepth: 16)
        var set: [Members]?
        var single = Members()
        try reader.readObject { (name, value) throws(JSONSyntaxError) in
            guard name == "keys" else { return try self.read(name, &value, into: &single) }
            guard set == nil else { throw JSONSyntaxError(.invalid("a second member “keys”"), at: value.offset) }
            var keys: [Members] = []
            try value.readArray { (element) throws(JSONSyntaxError) in
                var members = Members()
                if element.nextKind() == .object {
                    try element.readObject { (name, value) throws(JSONSyntaxError) in
                        try self.read(name, &value, into: &members)
                    }
                } else {
                    try element.skipValue()
                }
                keys.append(members)
            }
            set = keys
        }
        try reader.finish()
        if let set { return set }
        guard single["kty"] != nil else { throw JSONSyntaxError(.invalid("neither “keys” nor “kty”"), at: 0) }
        return [single]
    }

    private static func read(
        _ name: MemberName, _ value: inout JSONReader, into members: inout Members
    ) throws(JSONSyntaxError) {
        if self.textMembers.contains(name), value.nextKind() == .string {
            let former = members.texts.updateValue(try value.readString(), forKey: name.text)
            if former != nil { members.hasDuplicates = true }
        } else if name == "key_ops", value.nextKind() == .array {
            if members.operations != nil { members.hasDuplicates = true }
            var operations: [String] = []
            try value.readArray { (element) throws(JSONSyntaxError) in
                if element.nextKind() == .string {
                    operations.append(try element.readString())
                } else {
                    try element.skipValue()
                }
            }
            members.operations = operations
        } else {
            try value.skipValue()
        }
    }

    /// Keys of unknown kinds and for other purposes belong to others (RFC 7517 §5).
    private static func reasonToIgnore(_ members: Members, allowsSecrets: Bool) -> String? {
        if let use = members["use"], use != "sig" { return "is for another use than signatures" }
        if let operations = members.operations, !operations.contains("verify") { return "is not for verification" }
        if let name = members["alg"], TokenAlgorithm(name: name) == nil {
            return "is for an algorithm that is not supported"
        }
        switch members["kty"] {
        case "RSA": return nil
        case "oct": return allowsSecrets ? nil : "is a secret, which is accepted from a file only"
        case "EC":
            let isKnown = ["P-256", "P-384", "P-521"].contains(members["crv"] ?? "P-256")
            return isKnown ? nil : "is on a curve that is not supported"
        case "OKP":
            return members["crv"] ?? "Ed25519" == "Ed25519" ? nil : "is on a curve that is not supported"
        default: return "is of a kind that is not supported"
        }
    }

    private static func key(_ members: Members) throws(TokenKeyProblem) -> TokenKey {
        guard !members.hasDuplicates else { throw TokenKeyProblem("has a member twice") }
        let identifier = members["kid"]
        let algorithm = members["alg"].flatMap { TokenAlgorithm(name: $0) }
        if members["kty"] == "oct" {
            return try TokenKey(secret: members.bytes("k"), identifier: identifier, algorithm: algorithm)
        }
        let der = try self.subjectPublicKeyInfo(members)
        let key: PublicKey
        do throws(TLSFailure) {
            key = try PublicKey(subjectPublicKeyInfo: der)
        } catch {
            throw TokenKeyProblem("\(error)")
        }
        return try TokenKey(key, identifier: identifier, algorithm: algorithm)
    }

    /// RFC 7518 §6.2 and §6.3, RFC 8037 §2.
    private static func subjectPublicKeyInfo(_ members: Members) throws(TokenKeyProblem) -> [UInt8] {
        switch (members["kty"], members["crv"]) {
        case ("RSA", _):
            let numbers = DER.integer(try members.bytes("n")[...]) + DER.integer(try members.bytes("e")[...])
            return DER.rsaPublicKey(pkcs1: DER.sequence(numbers))
        case ("EC", "P-256"): return try self.point(members, size: 32, DER.Identifier.p256)
        case ("EC", "P-384"): return try self.point(members, size: 48, DER.Identifier.p384)
        case ("EC", "P-521"): return try self.point(members, size: 66, DER.Identifier.p521)
        case ("OKP", "Ed25519"):
            let key = try members.bytes("x")
            guard key.count == 32 else { throw TokenKeyProblem("has an “x” of \(key.count) bytes instead of 32") }
            return DER.publicKey(algorithm: DER.identifier(DER.Identifier.ed25519), key: key)
        default: throw TokenKeyProblem("has no “crv”")
        }
    }

    private static func point(
        _ members: Members, size: Int, _ curve: [UInt8]
    ) throws(TokenKeyProblem) -> [UInt8] {
        let (x, y) = (try members.bytes("x"), try members.bytes("y"))
        guard x.count == size, y.count == size else {
            throw TokenKeyProblem("has an “x” or “y” of another length than \(size) bytes")
        }
        let algorithm = DER.identifier(DER.Identifier.ellipticCurve) + DER.identifier(curve)
        return DER.publicKey(algorithm: algorithm, key: [0x04] + x + y)
    }
}
