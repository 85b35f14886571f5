import HTTPSemantics
import HTTPTypes
import Testing

@Suite("Storable responses, RFC 9111 §3")
struct StorabilityTests {
    private func judge(
        _ fields: HTTPFields, status: Int = 200, method: HTTPRequest.Method = .get, request: HTTPFields = [:]
    ) -> Storability {
        Storability.evaluate(method: method, requestFields: request, status: status, fields: fields)
    }

    @Test func onlyResponseToGetIsStorable() {
        #expect(self.judge([:]) == .storable)
        for method in [HTTPRequest.Method.head, .post, .put, .delete, .options, .patch] {
            #expect(self.judge([.cacheControl: "max-age=60"], method: method) == .refused(.method))
        }
        #expect(self.judge([:], request: [.range: "bytes=0-1"]) == .refused(.method))
    }

    @Test func forbiddenResponseIsNotStored() {
        #expect(self.judge([.cacheControl: "max-age=60, no-store"]) == .refused(.noStore))
        #expect(self.judge([.cacheControl: "max-age=60"], request: [.cacheControl: "no-store"]) == .refused(.noStore))
        #expect(self.judge([.cacheControl: "private, max-age=60"]) == .storable)
        #expect(self.judge([.cacheControl: "no-cache"]) == .storable)
        #expect(self.judge([:], request: [.authorization: "Basic eA=="]) == .storable)
    }

    @Test func storabilityDependsOnTheStatus() {
        for status in [200, 203, 204, 300, 301, 308, 404, 405, 410, 414, 501] {
            #expect(self.judge([:], status: status) == .storable, "\(status)")
        }
        for status in [100, 101, 103, 206, 304] {
            #expect(self.judge([.cacheControl: "max-age=60"], status: status) == .refused(.status), "\(status)")
        }
        for status in [201, 302, 307, 400, 403, 500] {
            #expect(self.judge([:], status: status) == .refused(.status), "\(status)")
            #expect(self.judge([.cacheControl: "max-age=60"], status: status) == .storable, "\(status)")
            #expect(self.judge([.expires: "0"], status: status) == .storable, "\(status)")
        }
    }

    @Test func mustUnderstandOverridesNoStoreWhereUnderstood() {
        #expect(self.judge([.cacheControl: "must-understand, no-store"]) == .storable)
        #expect(self.judge([.cacheControl: "must-understand, max-age=5"], status: 299) == .refused(.status))
    }

    @Test func responseThatVariesByEverythingIsNotStored() {
        #expect(self.judge([.vary: "*"]) == .refused(.varies))
        #expect(self.judge([.vary: "accept, *"]) == .refused(.varies))
        #expect(self.judge([.vary: "accept, cookie"]) == .storable)
        let many = (0..<100).map { "x-\($0)" }.joined(separator: ",")
        #expect(self.judge([.vary: many]) == .refused(.varies))
    }
}
