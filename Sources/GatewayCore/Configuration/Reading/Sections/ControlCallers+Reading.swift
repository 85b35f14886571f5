extension ControlToken {
    init?(reading section: SectionReader<ControlTokenKey>) {
        let name = section.required(.name, as: .name)
        let hash = section.required(.hash, as: .tokenHash)
        let scopes = section.scopes(.scopes)
        var expires: Int64?
        section.readOrNone(.expires, into: &expires, as: .timestamp)
        guard let name, let hash else { return nil }
        self.init(name: name, hash: hash, scopes: scopes, expires: expires)
    }
}

extension ControlClient {
    init?(reading section: SectionReader<ControlClientKey>) {
        let name = section.required(.name, as: .name)
        let marks: [Mark?] = [
            section.value(.subject, as: ValueSyntax<String>.text).map { .subject($0) },
            section.value(.alternativeName, as: ValueSyntax<String>.text).map { .alternativeName($0) },
            section.value(.pin, as: .publicKeyPin).map { .pin($0) },
        ]
        let written = [ControlClientKey.subject, .alternativeName, .pin].filter { section.has($0) }
        if written.count != 1 {
            section.problems.add(
                at: section.path(written.last ?? .subject), expected: "one of subject, alternative-name and pin",
                remedy: written.isEmpty ? "add what its certificate shows" : "leave out the others")
        }
        let scopes = section.scopes(.scopes)
        guard let name, let mark = marks.compactMap({ $0 }).first else { return nil }
        self.init(name: name, mark: mark, scopes: scopes)
    }
}

extension ControlPeer {
    init(reading section: SectionReader<ControlPeerKey>) {
        let identifiers = ValueSyntax<Int>.integer(0...4_294_967_294)
        self.init(scopes: section.scopes(.scopes))
        self.user = section.value(.uid, as: identifiers).map { UInt32(clamping: $0) }
        self.group = section.value(.gid, as: identifiers).map { UInt32(clamping: $0) }
        if !section.has(.uid), !section.has(.gid) {
            section.add(.uid, expected: "uid, gid or both", found: "nothing", remedy: "add uid: with the user's number")
        }
    }
}

extension SectionReader {
    /// The scopes of a caller: at least one.
    fileprivate func scopes(_ key: Key) -> Set<ControlScope> {
        var scopes: [ControlScope] = []
        self.readList(key, into: &scopes, as: .choice)
        let known = ControlScope.allCases.map(\.rawValue).joined(separator: ", ")
        if !self.has(key) {
            self.add(key, expected: "what the caller may do", found: "nothing", remedy: "add some of \(known)")
        }
        self.refuseEmptyList(key, expected: "at least one scope", remedy: "there are \(known)")
        return Set(scopes)
    }
}
