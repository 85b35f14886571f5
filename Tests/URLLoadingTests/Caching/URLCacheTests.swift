import Foundation
import Testing
import URLLoading

@Suite("Caches")
struct URLCacheTests {
    @Test(arguments: [
        (["HOME": "/h", "XDG_CACHE_HOME": "/c"], "/c"), (["HOME": "/h"], "/h/.cache"),
        (["HOME": "/h", "XDG_CACHE_HOME": "c"], "/h/.cache"), (["HOME": "h"], NSHomeDirectory() + "/.cache"),
        ([:], NSHomeDirectory() + "/.cache"),
    ])
    func storesAreBelowTheDirectoriesOfTheEnvironment(_ environment: [String: String], _ path: String) {
        #expect(StorageLocation.root("XDG_CACHE_HOME", else: ".cache", in: environment).path == path)
    }

    private static let lots = 200 << 20
    private static let urls = ["https://apple.com/", "https://google.com/", "https://facebook.com/"]
    private let folder: TemporaryFolder

    init() throws { self.folder = try TemporaryFolder() }

    private func cache(memory: Int = Self.lots, disk: Int = Self.lots) -> URLCache {
        URLCache(memoryCapacity: memory, diskCapacity: disk, diskPath: self.folder.url.path)
    }

    private func filled(_ cache: URLCache) throws -> [CacheSample] {
        try Self.urls.map { url in
            let sample = try CacheSample(url)
            cache.storeCachedResponse(sample.cached, for: sample.request)
            return sample
        }
    }

    @Test func cacheReturnsStoredResponses() throws {
        let cache = self.cache()
        let sample = try CacheSample("https://a.org/")
        #expect(cache.cachedResponse(for: sample.request) == nil)
        cache.storeCachedResponse(sample.cached, for: sample.request)
        #expect(cache.cachedResponse(for: sample.request) == sample.cached)
        #expect(cache.cachedResponse(for: URLRequest(url: try #require(URL(string: "https://a.org/b")))) == nil)
        let fragment = try #require(URL(string: "https://a.org/#part"))
        #expect(cache.cachedResponse(for: URLRequest(url: fragment)) == sample.cached)
    }

    @Test(arguments: [
        (URLCache.StoragePolicy.allowed, 1, true), (.allowedInMemoryOnly, 0, true), (.notAllowed, 0, false),
    ])
    func cacheFollowsTheStoragePolicy(_ policy: URLCache.StoragePolicy, _ files: Int, _ isKept: Bool) throws {
        let cache = self.cache()
        let sample = try CacheSample("https://a.org/", policy: policy)
        cache.storeCachedResponse(sample.cached, for: sample.request)
        #expect(try self.folder.names.count == files)
        #expect((cache.cachedResponse(for: sample.request) != nil) == isKept)
    }

    @Test func newerResponseInMemoryRemovesTheOneOnDisk() throws {
        let cache = self.cache()
        let old = try CacheSample("https://a.org/")
        cache.storeCachedResponse(old.cached, for: old.request)
        let new = try CacheSample("https://a.org/", first: 1, policy: .allowedInMemoryOnly)
        cache.storeCachedResponse(new.cached, for: new.request)
        #expect(try self.folder.names.isEmpty && cache.cachedResponse(for: old.request) == new.cached)
    }

    @Test func cacheWithoutDiskCapacityUsesNoDisk() throws {
        let cache = self.cache(disk: 0)
        let samples = try self.filled(cache)
        #expect(try self.folder.names.isEmpty && cache.currentDiskUsage == 0)
        #expect(cache.cachedResponse(for: samples[0].request) != nil)
    }

    @Test func cacheWithoutMemoryCapacityUsesNoMemory() throws {
        let cache = self.cache(memory: 0)
        let samples = try self.filled(cache)
        #expect(try self.folder.names.count == 3 && cache.currentMemoryUsage == 0)
        #expect(cache.cachedResponse(for: samples[0].request) == samples[0].cached)
        try self.folder.empty()
        #expect(cache.cachedResponse(for: samples[0].request) == nil)
    }

    @Test func reducedCapacityShrinksTheCacheAtOnce() throws {
        let cache = self.cache()
        let samples = try self.filled(cache)
        cache.diskCapacity = 0
        #expect(try self.folder.names.isEmpty && cache.currentDiskUsage == 0)
        #expect(samples.allSatisfy { cache.cachedResponse(for: $0.request) != nil })
        cache.memoryCapacity = 0
        #expect(samples.allSatisfy { cache.cachedResponse(for: $0.request) == nil })
        #expect(cache.memoryCapacity == 0 && cache.diskCapacity == 0 && cache.currentMemoryUsage == 0)
        cache.memoryCapacity = -5
        #expect(cache.memoryCapacity == 0)
    }

    @Test func leastRecentlyUsedResponseIsEvicted() throws {
        let cache = self.cache(memory: 3 * 2500, disk: 0)
        let samples = try self.filled(cache)
        _ = cache.cachedResponse(for: samples[0].request)
        let more = try CacheSample("https://more.org/")
        cache.storeCachedResponse(more.cached, for: more.request)
        #expect(cache.cachedResponse(for: samples[1].request) == nil)
        #expect([samples[0], samples[2], more].allSatisfy { cache.cachedResponse(for: $0.request) != nil })
        let huge = try CacheSample("https://huge.org/", size: 8000)
        cache.storeCachedResponse(huge.cached, for: huge.request)
        #expect(cache.cachedResponse(for: huge.request) == nil && cache.cachedResponse(for: more.request) != nil)
    }

    @Test func diskEvictsTheLeastRecentlyUsedToo() throws {
        let cache = self.cache(memory: 0, disk: 3 * 3000)
        let samples = try self.filled(cache)
        _ = cache.cachedResponse(for: samples[0].request)
        let more = try CacheSample("https://more.org/")
        cache.storeCachedResponse(more.cached, for: more.request)
        #expect(try self.folder.names.count == 3 && cache.currentDiskUsage <= 9000 && cache.currentDiskUsage > 6144)
        #expect(cache.cachedResponse(for: samples[1].request) == nil)
        #expect(cache.cachedResponse(for: samples[0].request) != nil)
        let huge = try CacheSample("https://more.org/", size: 9000)
        cache.storeCachedResponse(huge.cached, for: huge.request)
        #expect(cache.cachedResponse(for: huge.request) == nil)
    }

    @Test func cacheStaysWithinItsCapacity() throws {
        let cache = self.cache(memory: 20_000, disk: 0)
        for index in 0..<2000 {
            let sample = try CacheSample("https://a.org/\(index % 37)", size: index % 900)
            cache.storeCachedResponse(sample.cached, for: sample.request)
            _ = cache.cachedResponse(for: sample.request)
            try #require(cache.currentMemoryUsage <= 20_000)
            try #require(cache.cachedResponse(for: sample.request) != nil)
        }
    }

    @Test func oneOrAllResponsesAreRemoved() throws {
        let cache = self.cache()
        let samples = try self.filled(cache)
        cache.removeCachedResponse(for: samples[0].request)
        #expect(samples.map { cache.cachedResponse(for: $0.request) != nil } == [false, true, true])
        #expect(try self.folder.names.count == 2)
        cache.removeAllCachedResponses()
        #expect(samples.allSatisfy { cache.cachedResponse(for: $0.request) == nil })
        #expect(try self.folder.names.isEmpty && cache.currentMemoryUsage == 0 && cache.currentDiskUsage == 0)
    }

    @Test func responsesStoredSinceADateAreRemoved() throws {
        let cache = self.cache()
        let samples = try self.filled(cache)
        cache.removeCachedResponses(since: Date(timeIntervalSinceNow: 60))
        #expect(try self.folder.names.count == 3)
        cache.removeCachedResponses(since: Date(timeIntervalSinceNow: -60))
        #expect(samples.allSatisfy { cache.cachedResponse(for: $0.request) == nil })
        #expect(try self.folder.names.isEmpty)
    }

    @Test func urlHasOneResponse() throws {
        let cache = self.cache()
        for first in UInt8(1)...2 {
            let sample = try CacheSample("https://a.org/", first: first)
            cache.storeCachedResponse(sample.cached, for: sample.request)
        }
        #expect(try self.folder.names.count == 1)
        let found = cache.cachedResponse(for: try CacheSample("https://a.org/").request)
        #expect(found?.data.first == 2)
    }

    @Test(arguments: ["POST", "HEAD", "PUT"])
    func onlyResponseToGETIsKept(_ method: String) throws {
        let cache = self.cache()
        let sample = try CacheSample("https://a.org/")
        var request = sample.request
        request.httpMethod = method
        cache.storeCachedResponse(sample.cached, for: request)
        #expect(cache.cachedResponse(for: sample.request) == nil)
        cache.storeCachedResponse(sample.cached, for: sample.request)
        #expect(cache.cachedResponse(for: request) == nil)
    }

    @Test func cacheIsSafeFromManyThreads() async throws {
        let cache = self.cache(memory: 10_000, disk: 20_000)
        let samples = try (0..<40).map { try CacheSample("https://a.org/\($0)", size: 1000) }
        await withTaskGroup(of: Void.self) { group in
            for sample in samples {
                let request = sample.request
                let cached = sample.cached
                group.addTask {
                    cache.storeCachedResponse(cached, for: request)
                    _ = cache.cachedResponse(for: request)
                    cache.removeCachedResponse(for: request)
                }
            }
        }
        #expect(cache.currentMemoryUsage == 0 && cache.currentDiskUsage == 0)
        #expect(try self.folder.names.isEmpty)
    }

    /// In a process of its own: other tests use the shared cache.
    @Test func sharedCacheCanBeReplaced() async {
        await #expect(processExitsWith: .success) {
            let folder = try TemporaryFolder()
            let before = URLCache.shared
            try #require(before.memoryCapacity == 4 << 20 && before.diskCapacity == 20 << 20)
            let other = URLCache(memoryCapacity: 1, diskCapacity: 0, directory: folder.url)
            URLCache.shared = other
            try #require(URLCache.shared === other)
        }
    }
}
