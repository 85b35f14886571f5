extension SurfaceEntry {
    /// Section M: caches.
    static let caches: [SurfaceEntry] = [
        .proven(
            "M1", "URLCache", by: "URLCacheTests.cacheReturnsStoredResponses",
            "URLCacheTests.cacheIsSafeFromManyThreads",
            "DiskCacheTests.truncatedFileHoldsNothing"),
        .proven("M2", "shared", by: "URLCacheTests.sharedCacheCanBeReplaced"),
        .proven("M3", "init(memoryCapacity:diskCapacity:diskPath:)", by: "URLCacheTests.cacheReturnsStoredResponses"),
        .proven(
            "M4", "init(memoryCapacity:diskCapacity:directory:)", by: "DiskCacheTests.diskCacheIsReadByTheNextProcess",
            "DiskCacheTests.folderIsMadeWhenItIsNeeded"),
        .proven(
            "M5", "cachedResponse(for:)", by: "URLCacheTests.cacheReturnsStoredResponses",
            "URLCacheTests.onlyResponseToGETIsKept"),
        .proven(
            "M6", "storeCachedResponse(_:for:)", by: "URLCacheTests.cacheFollowsTheStoragePolicy",
            "URLCacheTests.urlHasOneResponse"),
        .proven("M7", "removeCachedResponse(for:)", by: "URLCacheTests.oneOrAllResponsesAreRemoved"),
        .proven("M8", "removeAllCachedResponses()", by: "URLCacheTests.oneOrAllResponsesAreRemoved"),
        .proven("M9", "removeCachedResponses(since:)", by: "URLCacheTests.responsesStoredSinceADateAreRemoved"),
        .proven(
            "M10", "memoryCapacity, diskCapacity", by: "URLCacheTests.reducedCapacityShrinksTheCacheAtOnce",
            "URLCacheTests.leastRecentlyUsedResponseIsEvicted", "URLCacheTests.diskEvictsTheLeastRecentlyUsedToo",
            "DiskCacheTests.diskCacheOfAnEarlierProcessIsShrunk"),
        .proven(
            "M11", "currentMemoryUsage, currentDiskUsage",
            by: "URLCacheTests.cacheStaysWithinItsCapacity", "URLCacheTests.diskEvictsTheLeastRecentlyUsedToo"),
        .proven(
            "M12", "storeCachedResponse(_:for: task)", by: "CacheLoadingTests.programCanStoreAResponseForATask"),
        .proven(
            "M13", "getCachedResponse(for:completionHandler:)",
            by: "CacheLoadingTests.programCanStoreAResponseForATask"),
        .proven(
            "M14", "removeCachedResponse(for: task)", by: "CacheLoadingTests.programCanStoreAResponseForATask"),
        .proven("M15", "StoragePolicy", by: "URLCacheTests.cacheFollowsTheStoragePolicy"),
        .proven(
            "M16", "CachedURLResponse", by: "CachedURLResponseTests.responsesAreEqualWithContentAndPolicy",
            "CachedURLResponseTests.cachedResponseIsDecodedFromAnArchive"),
        .proven(
            "M17", "init(response:data:)", by: "CachedURLResponseTests.cachedResponseHasItsInitialValues",
            "CacheLoadingTests.responseStoredByTheProgramIsUsed",
            "CacheLoadingTests.responseChangedByTheDelegateIsStored"),
        .proven(
            "M18", "init(response:data:userInfo:storagePolicy:)",
            by: "CachedURLResponseTests.cachedResponseHasItsInitialValues"),
        .proven(
            "M19", "response, data, userInfo, storagePolicy",
            by: "CachedURLResponseTests.cachedResponseHasItsInitialValues"),
        .proven(
            "M20", "serving and storing by RFC 9111", by: "CacheLoadingTests.freshResponseIsAnsweredFromTheCache",
            "CacheLoadingTests.staleResponseIsValidated", "CacheLoadingTests.varyFieldSelectsTheCachedResponse",
            "CacheLoadingTests.policyOfTheRequestIsFollowed", "CacheLoadingTests.serverIsAskedWhereItMustBe",
            "CacheLoadingTests.unsafeMethodInvalidatesTheCachedResponse"),
    ]
}
