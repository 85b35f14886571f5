import HTTPSemantics
import Testing

@Suite("Challenges, RFC 9110 §11.6.1")
struct ChallengeTests {
    private func parsed(_ lines: String...) -> [String] {
        Challenge.parse(lines).map { challenge in
            let parameters = challenge.parameters.map { "\($0.name)=\($0.value)" }
            return ([challenge.schemeName] + (challenge.token68.map { ["<\($0)>"] } ?? []) + parameters)
                .joined(separator: "|")
        }
    }

    @Test func longValuesAreLeftOut() {
        for (count, isKept) in [(Challenge.valueLimit, true), (Challenge.valueLimit + 1, false)] {
            let text = String(repeating: "x", count: count)
            let challenge = Challenge.parse(["Digest realm=\"\(text)\", nonce=n"]).first
            #expect((challenge?.realm == text) == isKept && challenge?.parameter("nonce") == "n")
        }
    }

    @Test(arguments: [
        ("Basic realm=\"WallyWorld\"", ["Basic|realm=WallyWorld"]),
        ("Basic", ["Basic"]), ("Negotiate", ["Negotiate"]), ("", []), (" , ,", []),
        // RFC 9110 §11.6.1
        (
            "Basic realm=\"simple\", Newauth realm=\"apps\", type=1, title=\"Login to \\\"apps\\\"\"",
            ["Basic|realm=simple", "Newauth|realm=apps|type=1|title=Login to \"apps\""]
        ),
        ("Negotiate YIIZ+a/b==", ["Negotiate|<YIIZ+a/b==>"]),
        ("NTLM abc=, Basic realm=x", ["NTLM|<abc=>", "Basic|realm=x"]),
        ("Negotiate, NTLM", ["Negotiate", "NTLM"]),
        ("Negotiate , ,Basic realm=\"a,b\"", ["Negotiate", "Basic|realm=a,b"]),
        ("Basic realm = \"a\" , charset=\"UTF-8\"", ["Basic|realm=a|charset=UTF-8"]),
        ("Digest realm=\"a\", nonce=ab/c==, qop=\"auth,auth-int\"", ["Digest|realm=a|nonce=ab/c==|qop=auth,auth-int"]),
        ("Basic, basic realm =    \"First \\\" realm\"", ["Basic", "basic|realm=First \" realm"]),
        ("Basic realm=\"\"", ["Basic|realm="]), ("realm=\"lost\", Basic realm=\"kept\"", ["Basic|realm=kept"]),
        ("Basic realm=\"Second realm\"charset=", ["Basic|realm=Second realm"]),
        ("Basic realm=\"Second realm\",charset=", ["Basic|realm=Second realm", "charset"]),
        ("not real, Basic realm=\"x\"", ["not|<real>", "Basic|realm=x"]), ("Basic realm=\"broken", ["Basic"]),
        ("\"quoted\" Basic realm=x", []), ("Basic\trealm=x", ["Basic|realm=x"]),
    ])
    func challengesAreReadFromOneLine(_ line: String, _ expected: [String]) {
        #expect(self.parsed(line) == expected)
    }

    @Test func challengesAreReadFromSeveralLines() {
        #expect(
            self.parsed("Negotiate", "Digest realm=a, nonce=b", "Basic realm=c")
                == ["Negotiate", "Digest|realm=a|nonce=b", "Basic|realm=c"])
    }

    @Test func parameterNamesAreCaseInsensitive() {
        let challenge = Challenge.parse(["BASIC Realm=\"a\", CHARSET=utf-8, realm=b"]).first
        #expect(challenge?.scheme == .basic)
        #expect(challenge?.realm == "a")
        #expect(challenge?.parameter("charset") == "utf-8")
        #expect(challenge?.parameter("other") == nil)
    }

    @Test func numberOfChallengesAndParametersIsBounded() {
        #expect(Challenge.parse([String(repeating: "Basic,", count: 10_000)]).count == Challenge.countLimit)
        let many = "Digest " + (0..<1000).map { "p\($0)=1" }.joined(separator: ",")
        #expect(Challenge.parse([many]).first?.parameters.count == Challenge.parameterLimit)
        #expect(Challenge.parse([String(repeating: "a", count: 70_000)]) == [])
    }

    @Test func strongestChallengeIsAnsweredFirst() {
        let challenges = Challenge.parse([
            "Basic realm=a", "Bearer", "Digest realm=a, nonce=b, algorithm=SHA-256",
            "Digest realm=a, nonce=b", "Digest realm=a, nonce=b, algorithm=SHA-512", "Negotiate", "NTLM", "Basic",
        ])
        let all: Set<AuthenticationScheme> = [.basic, .digest, .ntlm, .negotiate]
        #expect(
            Challenge.ranked(challenges, supporting: all).map(\.schemeName)
                == ["Negotiate", "NTLM", "Digest", "Digest", "Basic"])
        let digests = Challenge.ranked(challenges, supporting: [.digest, .basic])
        #expect(digests.map { $0.parameter("algorithm") } == ["SHA-256", nil, nil])
    }

    /// RFC 7617 §2 and §2.1
    @Test(arguments: [
        ("Aladdin", "open sesame", "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="), ("test", "123£", "Basic dGVzdDoxMjPCow=="),
        ("", "", "Basic Og=="), ("a", "b:c", "Basic YTpiOmM="),
    ])
    func basicChallengeIsAnsweredByNameAndPassword(_ user: String, _ password: String, _ value: String) {
        #expect(BasicCredentials.fieldValue(user: user, password: password) == value)
    }

    @Test func basicRefusesUnencodableCredentials() {
        #expect(BasicCredentials.fieldValue(user: "a:b", password: "c") == nil)
        #expect(BasicCredentials.fieldValue(user: "a\n", password: "c") == nil)
        #expect(BasicCredentials.fieldValue(user: "a", password: "c\u{7F}") == nil)
    }

    /// RFC 7617 §2.2
    @Test(arguments: [
        ("/docs/index.html", "/docs/test.doc", true), ("/docs/index.html", "/docs/", true),
        ("/docs/index.html", "/docs/a/b", true), ("/docs/index.html", "/other/index.html", false),
        ("/docs/index.html", "/docs", false), ("/", "/anything", true), ("", "/anything", true), ("/a", "", true),
    ])
    func basicProtectionSpaceCoversItsFolder(_ challenged: String, _ path: String, _ isCovered: Bool) {
        #expect(ProtectionScope(basicChallengedAt: challenged).covers(path) == isCovered)
    }

    @Test func digestProtectionSpaceIsItsDomain() {
        #expect(ProtectionScope(digestDomain: []).covers("/any"))
        let scope = ProtectionScope(digestDomain: ["/a/", "/b"])
        #expect(scope.covers("/a/x") && scope.covers("/b") && !scope.covers("/a") && !scope.covers("/c"))
    }
}
