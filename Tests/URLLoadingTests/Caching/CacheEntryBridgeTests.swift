import Foundation
import HTTPSemantics
import HTTPTypes
import Testing
import URLLoading

@Suite("Cached responses under the rules of caches")
struct CacheEntryBridgeTests {
    @Test func cacheEntryKeepsTheFieldsOfTheRules() throws {
        let url = try #require(URL(string: "http://a/"))
        let fields: HTTPFields = [.cacheControl: "max-age=60", .vary: "Accept", .eTag: "\"1\""]
        let entry = CacheEntry(
            status: 200, fields: fields, requestFields: [.accept: "text/html"], requestTime: HTTPDate(seconds: 100),
            responseTime: HTTPDate(seconds: 101))
        let response = HTTPURLResponse(
            url: url, statusCode: 200, httpVersion: "HTTP/1.1", fields: fields, contentIsEncoded: false)
        let cached = CachedURLResponse(response: response, data: Data([1]), storagePolicy: .allowed, entry: entry)
        let folder = try TemporaryFolder()
        let request = URLRequest(url: url)
        URLCache(memoryCapacity: 0, diskCapacity: 10_000, directory: folder.url)
            .storeCachedResponse(cached, for: request)
        let later = URLCache(memoryCapacity: 10_000, diskCapacity: 10_000, directory: folder.url)
        let found = try #require(later.cachedResponse(for: request)?.entry)
        #expect(found.lifetime == 60 && found.isFresh(at: HTTPDate(seconds: 150)))
        #expect(!found.isFresh(at: HTTPDate(seconds: 170)) && found.entityTag == entry.entityTag)
        #expect(found.varyKey.matches([.accept: "text/html"]) && !found.varyKey.matches([.accept: "x"]))
        #expect(found.requestTime.seconds == 100 && found.responseTime.seconds == 101 && found.status == 200)
    }

    @Test func responseOfUnknownAgeHasNoEntry() throws {
        #expect(try CacheSample("http://a/").cached.entry == nil)
    }

    @Test func cachePoliciesAreMapped() {
        let policies: [URLRequest.CachePolicy] = [
            .useProtocolCachePolicy, .reloadIgnoringLocalCacheData, .returnCacheDataElseLoad, .returnCacheDataDontLoad,
            .reloadIgnoringLocalAndRemoteCacheData, .reloadRevalidatingCacheData,
        ]
        let meanings: [CachePolicy] = [
            .useProtocolCachePolicy, .reloadIgnoringLocalCacheData, .returnCacheDataElseLoad, .returnCacheDataDontLoad,
            .reloadIgnoringLocalAndRemoteCacheData, .reloadRevalidatingCacheData,
        ]
        #expect(policies.map(\.meaning) == meanings)
    }

    @Test func fieldWithoutANameIsLeftOut() throws {
        let url = try #require(URL(string: "http://a/"))
        let response = HTTPURLResponse(
            url: url, statusCode: 200, httpVersion: nil, headerFields: ["A B": "1", "vary": "x", "": "2"])
        #expect(response?.httpFields == [.vary: "x"])
    }
}
