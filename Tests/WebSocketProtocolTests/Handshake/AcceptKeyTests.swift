import Testing
import WebSocketProtocol

@Suite("Accept key, RFC 6455 §1.3")
struct AcceptKeyTests {
    @Test func keyOfTheRFCHasItsValue() {
        #expect(AcceptKey.value(for: "dGhlIHNhbXBsZSBub25jZQ==") == "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=")
    }
}
