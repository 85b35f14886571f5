import Foundation
import Testing
import URLLoading

@Suite("Caches on disk")
struct DiskCacheTests {
    private let folder: TemporaryFolder

    init() throws { self.folder = try TemporaryFolder() }

    private func cache(disk: Int = 1 << 20) -> URLCache {
        URLCache(memoryCapacity: 0, diskCapacity: disk, directory: self.folder.url)
    }

    private func file() throws -> URL {
        self.folder.url.appendingPathComponent(try #require(try self.folder.names.first))
    }

    @Test func diskCacheIsReadByTheNextProcess() throws {
        let exchange = CachedExchange(requestTime: 5, responseTime: 7, selection: ["accept": "x", "cookie": nil])
        let sample = try CacheSample("https://a.org/", userInfo: ["a": 1, "b": ["c"]], exchange: exchange)
        self.cache().storeCachedResponse(sample.cached, for: sample.request)
        let later = self.cache()
        #expect(later.currentDiskUsage > 2048 && later.currentDiskUsage < 4096)
        let found = try #require(later.cachedResponse(for: sample.request))
        #expect(found == sample.cached && found.exchange == exchange && found.userInfo?["a"] as? Int == 1)
        #expect((found.response as? HTTPURLResponse)?.value(forHTTPHeaderField: "etag") == "\"1\"")
        later.removeAllCachedResponses()
        #expect(self.cache().cachedResponse(for: sample.request) == nil)
    }

    @Test func responseOfAnotherSchemeIsKept() throws {
        let url = try #require(URL(string: "custom:thing"))
        let response = URLResponse(url: url, mimeType: "a/b", expectedContentLength: 4, textEncodingName: "utf-8")
        let cached = CachedURLResponse(
            response: response, data: Data(), userInfo: ["x": NSObject()], storagePolicy: .allowed)
        self.cache().storeCachedResponse(cached, for: URLRequest(url: url))
        let found = self.cache().cachedResponse(for: URLRequest(url: url))
        #expect(found == cached && found?.userInfo == nil)
    }

    @Test func diskCacheOfAnEarlierProcessIsShrunk() throws {
        for index in 0..<5 {
            let sample = try CacheSample("https://a.org/\(index)")
            self.cache().storeCachedResponse(sample.cached, for: sample.request)
        }
        let later = self.cache(disk: 6000)
        #expect(later.currentDiskUsage <= 6000)
        #expect(try self.folder.names.count == 2)
    }

    @Test func truncatedFileHoldsNothing() throws {
        let sample = try CacheSample("https://a.org/", size: 20)
        self.cache().storeCachedResponse(sample.cached, for: sample.request)
        let file = try self.file()
        let whole = try Data(contentsOf: file)
        for length in 0..<whole.count {
            try whole.prefix(length).write(to: file)
            let cache = self.cache()
            try #require(cache.cachedResponse(for: sample.request) == nil, "\(length) bytes")
            try #require(!FileManager.default.fileExists(atPath: file.path))
        }
        try whole.write(to: file)
        #expect(self.cache().cachedResponse(for: sample.request) == sample.cached)
        try (whole + [0]).write(to: file)
        #expect(self.cache().cachedResponse(for: sample.request) == nil)
    }

    @Test func changedFileGivesNothingOrTheStoredLength() throws {
        let sample = try CacheSample("https://a.org/", size: 20)
        self.cache().storeCachedResponse(sample.cached, for: sample.request)
        let file = try self.file()
        let whole = try Data(contentsOf: file)
        for index in whole.indices {
            var broken = whole
            broken[index] ^= UInt8(truncatingIfNeeded: index * 37 | 1)
            try broken.write(to: file)
            let found = self.cache().cachedResponse(for: sample.request)
            // The content has no checksum, but its length is stored.
            #expect(found == nil || found?.data.count == 20)
        }
    }

    @Test func responseOfAnotherURLIsNotGiven() throws {
        let one = try CacheSample("https://a.org/1")
        let two = try CacheSample("https://a.org/2")
        self.cache().storeCachedResponse(one.cached, for: one.request)
        let first = try self.file()
        let content = try Data(contentsOf: first)
        try FileManager.default.removeItem(at: first)
        self.cache().storeCachedResponse(two.cached, for: two.request)
        try content.write(to: try self.file())
        #expect(self.cache().cachedResponse(for: two.request) == nil)
    }

    @Test func diskCacheKeepsForeignFilesAndRemovesOldDrafts() throws {
        let names = ["README", ".draft-old", ".draft-new"]
        for name in names { try Data("x".utf8).write(to: self.folder.url.appendingPathComponent(name)) }
        let old = self.folder.url.appendingPathComponent(".draft-old")
        try FileManager.default.setAttributes(
            [.modificationDate: Date(timeIntervalSinceNow: -7200)], ofItemAtPath: old.path)
        let cache = self.cache()
        #expect(cache.currentDiskUsage == 0)
        cache.removeAllCachedResponses()
        #expect(try self.folder.names == [".draft-new", "README"])
    }

    @Test func cacheWorksWithoutAFolder() throws {
        let folder = URL(fileURLWithPath: "/dev/null/none")
        let cache = URLCache(memoryCapacity: 10_000, diskCapacity: 10_000, directory: folder)
        let sample = try CacheSample("https://a.org/")
        cache.storeCachedResponse(sample.cached, for: sample.request)
        #expect(cache.cachedResponse(for: sample.request) == sample.cached && cache.currentDiskUsage == 0)
    }

    @Test func folderIsMadeWhenItIsNeeded() throws {
        let folder = self.folder.url.appendingPathComponent("a/b")
        let cache = URLCache(memoryCapacity: 0, diskCapacity: 10_000, directory: folder)
        #expect(cache.currentDiskUsage == 0)
        #expect(!FileManager.default.fileExists(atPath: folder.path))
        let sample = try CacheSample("https://a.org/")
        cache.storeCachedResponse(sample.cached, for: sample.request)
        #expect(cache.cachedResponse(for: sample.request) == sample.cached)
    }
}
