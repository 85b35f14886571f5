import HTTPSemantics
import HTTPTypes
import Testing

@Suite("Any text for fields and addresses")
struct FieldFuzzTests {
    private func each(_ pieces: [String], _ check: (String, String) -> Bool) -> Int {
        var count = 0
        for seed in 0..<3000 as Range<UInt64> {
            var text = FuzzText(seed: seed, pieces: pieces)
            if check(text.next(), "seed \(seed)") { count += 1 }
        }
        return count
    }

    private static let challenges = [
        "Basic", "Digest", "Negotiate", " ", "realm=", "\"a\"", "\"", "\\", ",", ", ", "nonce=", "b", "qop=", "auth",
        "auth-int", "algorithm=", "MD5", "SHA-256-sess", "abc==", "=", "charset=UTF-8", "stale=true", "userhash=true",
        "Digest realm=a, nonce=b, ",
    ]

    @Test func anyTextGivesChallengesWithinTheirLimits() {
        let digests = self.each(Self.challenges) { line, seed in
            let challenges = Challenge.parse([line, line])
            #expect(challenges.count <= Challenge.countLimit, "\(seed)")
            for challenge in challenges {
                #expect(!challenge.schemeName.isEmpty, "\(seed)")
                #expect(challenge.parameters.count <= Challenge.parameterLimit, "\(seed)")
            }
            return challenges.contains { self.answers($0, seed) }
        }
        #expect(digests > 100)
    }

    /// The answer to a challenge is itself read as it was meant.
    private func answers(_ challenge: Challenge, _ seed: String) -> Bool {
        guard let digest = DigestChallenge(challenge) else { return false }
        var session = DigestSession(digest, user: "u\"\\", password: "p")
        let value = session.fieldValue(for: DigestRequest(method: "GET", target: "/"), clientNonce: "c")
        let answer = Challenge.parse([value]).first
        let isPlain = { (text: String) in text.utf8.allSatisfy { (0x20...0x7E).contains($0) } }
        if isPlain(digest.realm), isPlain(digest.nonce) {
            #expect(answer?.realm == digest.realm, "\(seed)")
            #expect(answer?.parameter("nonce") == digest.nonce, "\(seed)")
        }
        #expect(!value.utf8.contains { $0 < 0x20 && $0 != 0x09 || $0 == 0x7F }, "\(seed)")
        session.received(authenticationLines: [challenge.parameters.first?.value ?? ""])
        _ = session.rechallenged(by: digest)
        return true
    }

    @Test func anyTextGivesStatesOfUploadsWithinTheirLimits() {
        let pieces = [
            "?1", "?0", "?", "7", "0", "-", "999999999999999", ";", "a=b", "max-size", "max-append-size", "=", ", ",
            "\"",
            "max-age=60",
        ]
        let offsets = self.each(pieces) { line, seed in
            var fields = HTTPFields()
            for name in ["Upload-Offset", "Upload-Complete", "Upload-Length", "Upload-Limit", "Retry-After"] {
                if let name = HTTPField.Name(name) { fields.append(HTTPField(name: name, value: line)) }
            }
            let state = UploadState(fields, now: HTTPDate(seconds: 0))
            for number in [state.offset, state.length, state.limits.size, state.retryAfter] {
                #expect((0..<1_000_000_000_000_000).contains(number ?? 0), "\(seed)")
            }
            #expect(state.limits.partSize ?? 1 > 0, "\(seed)")
            return state.offset != nil
        }
        #expect(offsets > 10)
    }

    @Test func anyTextGivesMediaTypesOfTwoTokens() {
        let pieces = [
            "text", "/", "html", ";", " ", "charset", "=", "utf-8", "\"", "\\", "boundary=", "b", "text/html",
        ]
        let types = self.each(pieces) { line, seed in
            guard let type = ContentType(line) else { return false }
            #expect(type.mediaType.split(separator: "/", omittingEmptySubsequences: false).count == 2, "\(seed)")
            #expect(type.charset?.isEmpty != true, "\(seed)")
            return true
        }
        #expect(types > 100)
    }

    @Test func anyTextGivesFilenamesAllowedOnDisk() {
        let pieces = [
            "attachment", ";", " ", "filename", "=", "filename*=", "UTF-8''", "%2F", "%00", "/", "..", ".", "\"", "\\",
            "a",
            "attachment; filename=",
        ]
        let named = self.each(pieces) { line, seed in
            let name = SuggestedFilename.choose(disposition: line, path: line)
            #expect(!name.isEmpty && name != "." && name != ".." && name.utf8.count <= 255, "\(seed)")
            #expect(!name.unicodeScalars.contains { $0 == "/" || $0.value < 0x20 || $0.value == 0x7F }, "\(seed)")
            return name != SuggestedFilename.unknown
        }
        #expect(named > 100)
    }

    @Test func anyTextGivesRangesWithinTheirBounds() {
        let pieces = [
            "bytes ", "0", "5", "-", "/", "*", " ", ",", "bytes 0-", "/10", "bytes 5-9/", "+", "bytes 5-9/10",
            "bytes */7",
        ]
        let ranges = self.each(pieces) { line, seed in
            guard let range = ContentRange(line) else { return false }
            #expect(range.bytes.map { $0.lowerBound >= 0 && $0.upperBound < range.total ?? .max } ?? true, "\(seed)")
            return true
        }
        #expect(ranges > 10)
    }

    @Test func anyTextGivesReferencesOfVisibleLetters() {
        let pieces = ["http", ":", "//", "h", "/", "%", "%41", "?", "#", " ", "\u{E4}", "<", "[", "\"", "\\"]
        let references = self.each(pieces) { line, seed in
            guard case .reference(let reference) = RedirectLocation(status: 302, fields: [.location: line]) else {
                return false
            }
            #expect(reference.utf8.allSatisfy { (0x21...0x7E).contains($0) }, "\(seed)")
            return true
        }
        #expect(references > 1000)
    }

    @Test func anyTextGivesContentNoLargerThanItsURL() {
        let pieces = [
            "data:", "text/plain", ";", "base64", ",", "charset=", "utf-8", "%41", "%", "SGk", "=", "a", "data:,",
        ]
        let contents = self.each(pieces) { line, seed in
            guard let url = DataURL("data:" + line) else { return false }
            #expect(url.content.count <= line.utf8.count, "\(seed)")
            return true
        }
        #expect(contents > 200)
    }

    @Test func anyTextGivesEntityTagsThatAreReadBackEqual() {
        let tags = self.each(["W/", "\"", "a", " ", "*", ",", "\\", "\"x\""]) { line, seed in
            guard let tag = EntityTag(line) else { return false }
            #expect(EntityTag(tag.fieldValue) == tag, "\(seed)")
            return true
        }
        #expect(tags > 100)
    }
}
