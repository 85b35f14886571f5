import Foundation
import Testing
import URLLoading

@Suite("Responses as caches keep them")
struct CachedURLResponseTests {
    private static func cached(
        _ url: String = "http://example.com/", data: [UInt8] = [0, 1, 2],
        policy: URLCache.StoragePolicy = .allowedInMemoryOnly
    ) throws -> CachedURLResponse {
        let url = try #require(URL(string: url))
        let response = URLResponse(url: url, mimeType: nil, expectedContentLength: -1, textEncodingName: nil)
        return CachedURLResponse(
            response: response, data: Data(data), userInfo: ["Key1": "Value1"], storagePolicy: policy)
    }

    @Test func cachedResponseHasItsInitialValues() throws {
        let cached = try Self.cached()
        #expect(cached.data == Data([0, 1, 2]) && cached.userInfo?["Key1"] as? String == "Value1")
        #expect(cached.storagePolicy == .allowedInMemoryOnly && cached.exchange == nil)
        let plain = CachedURLResponse(response: cached.response, data: Data())
        #expect(plain.userInfo == nil && plain.storagePolicy == .allowed && plain.response === cached.response)
        let copy = try #require(cached.copy() as? CachedURLResponse)
        #expect(copy == cached && copy.userInfo?.count == 1)
    }

    @Test func responsesAreEqualWithContentAndPolicy() throws {
        let variants = try [
            Self.cached(), Self.cached("http://example.com/b"), Self.cached(data: [1]), Self.cached(policy: .allowed),
        ]
        let twin = try Self.cached()
        #expect(Set(variants).count == 4 && variants.contains(twin) && twin.hash == variants[0].hash)
        #expect(!twin.isEqual(NSObject()))
    }

    @Test func cachedResponseIsDecodedFromAnArchive() throws {
        let url = try #require(URL(string: "http://a/"))
        let response = try #require(
            HTTPURLResponse(url: url, statusCode: 203, httpVersion: "HTTP/1.1", headerFields: ["A": "b"]))
        for userInfo in [nil, ["seen": 3]] as [[String: Int]?] {
            let cached = CachedURLResponse(
                response: response, data: Data([9]), userInfo: userInfo, storagePolicy: .allowed)
            let data = try NSKeyedArchiver.archivedData(withRootObject: cached, requiringSecureCoding: true)
            let back = try NSKeyedUnarchiver.unarchivedObject(ofClass: CachedURLResponse.self, from: data)
            #expect(back == cached && back?.userInfo as? [String: Int] == userInfo)
        }
    }
}
