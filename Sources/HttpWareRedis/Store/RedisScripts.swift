/// The scripts that run in Redis as one step. They make the keys of contents from the index; on a cluster these are in its
/// slot.
enum RedisScripts {
    /// The field of an index that names the era in which its responses were stored. It is not a variant, whose names are
    /// hexadecimal.
    static let era = "era"

    /// Loads the responses of an index. Each is followed by its first piece for the first few responses, or else by whether
    /// that piece exists. There are none if the era of the URI has ended since they were stored. KEYS: the index; the era,
    /// only if the key has other parts than its URI. ARGV: the beginning of contents' keys; the number of responses whose piece is
    /// wanted.
    static let load: RedisArgument = """
        local out, most, n = {}, tonumber(ARGV[2]), 0
        if KEYS[2] then
            local era = redis.call('GET', KEYS[2])
            if not era or redis.call('HGET', KEYS[1], 'era') ~= era then return out end
        end
        local all = redis.call('HGETALL', KEYS[1])
        for i = 1, #all, 2 do
            if all[i] ~= 'era' then
                n = n + 1
                local content = ARGV[1] .. string.sub(all[i + 1], 1, 32)
                out[#out + 1] = all[i + 1]
                out[#out + 1] = redis.call(n <= most and 'HGET' or 'HEXISTS', content, '0')
            end
        end
        return out
        """

    /// Adds a response whose content exists to the index, in place of the response to the same requests. The former content
    /// stays for a while, for its current readers. A full index is emptied first, and so is one of an era that has ended. KEYS:
    /// index; content; the era, only if the key has other parts than its URI. ARGV: variant; record; milliseconds of its life;
    /// pieces; maximum number of variants; beginning of contents' keys; milliseconds for which former contents stay; channel;
    /// message; the name of an era that begins now; milliseconds for which an era lasts.
    static let store: RedisArgument = """
        local pieces = tonumber(ARGV[4])
        if pieces > 0 and redis.call('HLEN', KEYS[2]) ~= pieces then
            redis.call('UNLINK', KEYS[2])
            return 0
        end
        local function empty()
            local all = redis.call('HGETALL', KEYS[1])
            for i = 1, #all, 2 do
                if all[i] ~= 'era' then redis.call('PEXPIRE', ARGV[6] .. string.sub(all[i + 1], 1, 32), ARGV[7]) end
            end
            redis.call('UNLINK', KEYS[1])
        end
        if KEYS[3] then
            local era = redis.call('GET', KEYS[3])
            if not era then era = ARGV[10] end
            redis.call('SET', KEYS[3], era, 'PX', ARGV[11])
            if redis.call('HGET', KEYS[1], 'era') ~= era then
                empty()
                redis.call('HSET', KEYS[1], 'era', era)
            end
        end
        local old = redis.call('HGET', KEYS[1], ARGV[1])
        if old then
            redis.call('PEXPIRE', ARGV[6] .. string.sub(old, 1, 32), ARGV[7])
        elseif redis.call('HLEN', KEYS[1]) >= tonumber(ARGV[5]) then
            local era = redis.call('HGET', KEYS[1], 'era')
            empty()
            if era then redis.call('HSET', KEYS[1], 'era', era) end
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

    /// Removes all responses of the index of a URI, and ends the URI's era, so that the responses of its other keys are not
    /// used any more. KEYS: index, era. ARGV: beginning of contents' keys; milliseconds for which their contents stay;
    /// channel; message.
    static let invalidate: RedisArgument = """
        for _, value in ipairs(redis.call('HVALS', KEYS[1])) do
            redis.call('PEXPIRE', ARGV[1] .. string.sub(value, 1, 32), ARGV[2])
        end
        redis.call('UNLINK', KEYS[1], KEYS[2])
        redis.call('PUBLISH', ARGV[3], ARGV[4])
        return 1
        """
}
