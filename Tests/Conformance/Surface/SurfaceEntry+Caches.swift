extension SurfaceEntry {
    /// Section M: caches.
    static let caches: [SurfaceEntry] = [
        .proven(
            "M1", "URLCache", by: "URLCacheTests.cacheReturnsStoredResponses", "URLCacheTests.holdAgainstManyThreads",
            "DiskCacheTests.holdNothingInAFileThatBreaksOffAnywhere"),
        .proven("M2", "shared", by: "URLCacheTests.ofTheProgramCanBeReplaced"),
        .proven("M3", "init(memoryCapacity:diskCapacity:diskPath:)", by: "URLCacheTests.cacheReturnsStoredResponses"),
        .proven(
            "M4", "init(memoryCapacity:diskCapacity:directory:)", by: "DiskCacheTests.diskCacheIsReadByTheNextProcess",
            "DiskCacheTests.makeTheirFolderWhenTheyNeedIt"),
        .proven(
            "M5", "cachedResponse(for:)", by: "URLCacheTests.cacheReturnsStoredResponses",
            "URLCacheTests.keepAnswersToGETAlone"),
        .proven(
            "M6", "storeCachedResponse(_:for:)", by: "URLCacheTests.obeyTheStoragePolicy",
            "URLCacheTests.haveOneResponseForAURL"),
        .proven("M7", "removeCachedResponse(for:)", by: "URLCacheTests.forgetOneAndAll"),
        .proven("M8", "removeAllCachedResponses()", by: "URLCacheTests.forgetOneAndAll"),
        .proven("M9", "removeCachedResponses(since:)", by: "URLCacheTests.responsesStoredSinceADateAreRemoved"),
        .proven(
            "M10", "memoryCapacity, diskCapacity", by: "URLCacheTests.shrinkAtOnce",
            "URLCacheTests.leastRecentlyUsedResponseIsEvicted", "URLCacheTests.makeRoomOnDiskToo",
            "DiskCacheTests.diskCacheOfAnEarlierProcessIsShrunk"),
        .proven(
            "M11", "currentMemoryUsage, currentDiskUsage",
            by: "URLCacheTests.stayWithinTheirCapacityHoweverMuchTheyAreUsed", "URLCacheTests.makeRoomOnDiskToo"),
        .proven(
            "M12", "storeCachedResponse(_:for: task)", by: "CacheLoadingTests.isFilledByTheHandOfTheProgramForATask"),
        .proven(
            "M13", "getCachedResponse(for:completionHandler:)",
            by: "CacheLoadingTests.isFilledByTheHandOfTheProgramForATask"),
        .proven(
            "M14", "removeCachedResponse(for: task)", by: "CacheLoadingTests.isFilledByTheHandOfTheProgramForATask"),
        .proven("M15", "StoragePolicy", by: "URLCacheTests.obeyTheStoragePolicy"),
        .proven(
            "M16", "CachedURLResponse", by: "CachedURLResponseTests.areEqualWhenResponseContentAndPolicyAre",
            "CachedURLResponseTests.comeBackFromAnArchive"),
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
            "M20", "serving and storing by RFC 9111", by: "CacheLoadingTests.answersWhileFresh",
            "CacheLoadingTests.staleResponseIsValidated", "CacheLoadingTests.varyFieldSelectsTheCachedResponse",
            "CacheLoadingTests.followsThePoliciesOfRequests", "CacheLoadingTests.asksTheServerWhereItMust",
            "CacheLoadingTests.unsafeMethodInvalidatesTheCachedResponse"),
    ]
}
