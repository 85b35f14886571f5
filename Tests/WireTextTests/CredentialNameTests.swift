import Testing
import WireText

@Suite("Names of credentials")
struct CredentialNameTests {
    @Test(arguments: [
        "Authorization", "proxy-authorization", "Cookie", "Set-Cookie", "X-API-Key", "api-key", "apikey",
        "X-Auth-Token", "X-Access-Token", "Private-Token", "X-Amz-Security-Token", "X-Hub-Signature", "client_secret",
        "access_token", "Sec-WebSocket-Key", "Set-Cookie2",
    ])
    func namesOfCredentialsMatch(_ name: String) {
        #expect(CredentialName.matches(name))
    }

    @Test(arguments: [
        "", "Accept", "Origin", "X-Request-Id", "Sec-WebSocket-Protocol", "Keyword", "WWW-Authenticate", "room",
    ])
    func otherNamesDoNotMatch(_ name: String) {
        #expect(!CredentialName.matches(name))
    }

    @Test(arguments: [
        ("/chat?room=a&access_token=abc", "/chat?room=a&access_token=(hidden)"),
        ("/chat?api_key=a=b&token&key=", "/chat?api_key=(hidden)&token&key=(hidden)"), ("/token=a", "/token=a"),
        ("/?access%5Ftoke%6e=abc&%zz_token=d", "/?access%5Ftoke%6e=(hidden)&%zz_token=(hidden)"),
        ("/?", "/?"), ("/?a&&b=c", "/?a&&b=c"),
    ])
    func targetIsShownWithoutCredentials(_ target: String, _ shown: String) {
        #expect(CredentialName.hidingCredentials(inTarget: target) == shown)
    }
}
