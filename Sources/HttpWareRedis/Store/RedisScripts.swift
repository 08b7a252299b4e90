/// The scripts that run in Redis as one step. They make the keys of contents from the index; on a cluster these are in its
/// slot.
enum RedisScripts {
    /// Loads the responses of an index. Each is followed by its first piece for the first few responses, or else by whether
    /// that piece exists. KEYS: the index. ARGV: the beginning of contents' keys; the number of responses whose piece is
    /// wanted.
    static let load: RedisArgument = """
        local out, most = {}, tonumber(ARGV[2])
        for i, value in ipairs(redis.call('HVALS', KEYS[1])) do
            local content = ARGV[1] .. string.sub(value, 1, 32)
            out[#out + 1] = value
            out[#out + 1] = redis.call(i <= most and 'HGET' or 'HEXISTS', content, '0')
        end
        return out
        """

    /// Adds a response whose content exists to the index, in place of the response to the same requests. The former content
    /// stays for a while, for its current readers. A full index is emptied first. KEYS: index, content. ARGV: variant; record;
    /// milliseconds of its life; pieces; maximum number of variants; beginning of contents' keys; milliseconds for which
    /// former contents stay; channel; message.
    static let store: RedisArgument = """
        local pieces = tonumber(ARGV[4])
        if pieces > 0 and redis.call('HLEN', KEYS[2]) ~= pieces then
            redis.call('UNLINK', KEYS[2])
            return 0
        end
        local old = redis.call('HGET', KEYS[1], ARGV[1])
        if old then
            redis.call('PEXPIRE', ARGV[6] .. string.sub(old, 1, 32), ARGV[7])
        elseif redis.call('HLEN', KEYS[1]) >= tonumber(ARGV[5]) then
            for _, value in ipairs(redis.call('HVALS', KEYS[1])) do
                redis.call('PEXPIRE', ARGV[6] .. string.sub(value, 1, 32), ARGV[7])
            end
            redis.call('UNLINK', KEYS[1])
        end
        redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
        if redis.call('PTTL', KEYS[1]) < tonumber(ARGV[3]) then redis.call('PEXPIRE', KEYS[1], ARGV[3]) end
        if pieces > 0 then redis.call('PEXPIRE', KEYS[2], ARGV[3]) end
        redis.call('PUBLISH', ARGV[8], ARGV[9])
        return 1
        """

    /// Replaces a record that still exists by another one, or removes it if the other is empty. KEYS: index. ARGV: variant;
    /// the existing record; the new one; milliseconds of its life; beginning of contents' keys; milliseconds for which former
    /// contents stay; channel; message.
    static let change: RedisArgument = """
        local old = redis.call('HGET', KEYS[1], ARGV[1])
        if not old or string.sub(old, 33) ~= ARGV[2] then return 0 end
        local mark = string.sub(old, 1, 32)
        if ARGV[3] == '' then
            redis.call('HDEL', KEYS[1], ARGV[1])
            redis.call('PEXPIRE', ARGV[5] .. mark, ARGV[6])
        else
            redis.call('HSET', KEYS[1], ARGV[1], mark .. ARGV[3])
            if redis.call('PTTL', KEYS[1]) < tonumber(ARGV[4]) then redis.call('PEXPIRE', KEYS[1], ARGV[4]) end
            redis.call('PEXPIRE', ARGV[5] .. mark, ARGV[4])
        end
        redis.call('PUBLISH', ARGV[7], ARGV[8])
        return 1
        """

    /// Removes all responses of an index. KEYS: index. ARGV: beginning of contents' keys; milliseconds for which their
    /// contents stay; channel; message.
    static let invalidate: RedisArgument = """
        for _, value in ipairs(redis.call('HVALS', KEYS[1])) do
            redis.call('PEXPIRE', ARGV[1] .. string.sub(value, 1, 32), ARGV[2])
        end
        redis.call('UNLINK', KEYS[1])
        redis.call('PUBLISH', ARGV[3], ARGV[4])
        return 1
        """
}
